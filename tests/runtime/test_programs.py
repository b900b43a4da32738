"""Turns that need a program: they go to a node that has it, and any node ends those that nobody can run."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.making import ALICE, NOW, keep_conversation, make_agent, opened
from tests.runtime.nodes import DEAD, Nodes
from threadkeep.domain.agent import AgentCode, BlockedLoop, Code, Places, WorkerState
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.events import LogChunk, Notice
from threadkeep.domain.turn import ActiveFilter, Lease, TurnCode, TurnStatus
from threadkeep.engine.code.programs import ProgramRun
from threadkeep.engine.loop import HandOff, TurnStep
from threadkeep.log.format import decode_chunk
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.node import Node
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.running.absences import Absence
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import Start


class FakePrograms:
    """Programs that nobody starts."""

    def __init__(self, *codes: Code) -> None:
        self.codes: Sequence[Code] = codes
        self.blocked: BlockedLoop | None = None
        self.blocked_total_s = 0.0
        self.places: Mapping[str, Places] = {}

    def start(self, start: Start) -> ProgramRun:
        """Never called."""
        raise NotImplementedError


async def make_begun(store: Store, version: int | None = None) -> BegunTurn:
    agent = await store.agents.declare(make_agent(None, code=AgentCode("orders", 2)))
    assert agent is not None
    begun = (await keep_conversation(store, agent)).begin_turn("Where is it?", NOW)
    return replace(begun, turn=replace(begun.turn, code=TurnCode("orders", version)))


async def has_ended(store: Store, begun: BegunTurn) -> bool:
    return await store.turns.status(begun.turn.id) not in {TurnStatus.RUNNING, TurnStatus.WAITING}


async def hand_off(held: HeldTurn, control: TurnControl) -> AsyncGenerator[TurnStep]:
    yield HandOff()


async def test_turn_that_begins_on_a_node_without_its_program_goes_to_one_that_has_it(
    nodes: Nodes, store: Store
):
    bus = LocalBus()
    without = nodes.start(bus=bus)
    older = nodes.start(bus=bus, programs=FakePrograms(Code("billing", 9)))
    begun = await make_begun(store)
    await without.runner.begin(begun, TurnCourse(hand_off))
    await until(lambda: without.running_count == 0)
    for node in (without, older):
        await node.recover_abandoned()
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    nodes.start(bus=bus, programs=FakePrograms(Code("orders", 2)))
    await until(lambda: has_ended(store, begun))  # what the nodes of these tests do with turns they take over
    turn = await store.turns.get(ALICE, begun.turn.id)
    assert turn is not None and turn.code == TurnCode("orders", 2)


async def test_turn_whose_program_nobody_has_can_be_stopped_on_any_node(nodes: Nodes, store: Store):
    node = nodes.start()
    turns = [await make_begun(store, version) for version in (None, 2)]
    for begun in turns:
        await store.turns.begin(opened(begun, replace(DEAD, length_ms=-10)))
    await node.recover_abandoned()
    assert not [it for it in turns if await has_ended(store, it)]
    for begun in turns:
        assert await node.abort(begun.turn.id)
        assert await has_ended(store, begun)


async def test_stop_does_not_take_a_turn_from_the_node_that_runs_it(nodes: Nodes, store: Store):
    node = nodes.start()
    begun = await make_begun(store, 2)
    await store.turns.begin(opened(begun, Lease("another-node", 1, 10**9)))
    assert await store.log.adopt_ownerless(begun.turn.id, Lease(node.id, 1, 0)) is None


async def test_decided_turn_goes_to_a_node_that_has_its_program(nodes: Nodes, store: Store):
    bus = LocalBus()
    without, begun = nodes.start(bus=bus), await make_begun(store, 2)
    await store.turns.begin(opened(begun))
    await store.log.pause(begun.turn.id, 1, ())
    held = await store.log.adopt_waiting(begun.turn.id, Lease(without.id, 1, 4_000))
    assert held is not None and held.turn.code == TurnCode("orders", 2)
    await without.resume(held)
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    nodes.start(bus=bus, programs=FakePrograms(Code("orders", 3)))
    await until(lambda: has_ended(store, begun))


async def test_node_says_what_it_can_run_until_it_ends(nodes: Nodes, store: Store):
    async def is_ready() -> bool:
        served = await store.programs.served(["orders"])
        return "orders" in served and served["orders"].is_ready

    node: Node = nodes.start(programs=FakePrograms(Code("orders", 2)))
    await until(is_ready)
    assert node.programs.can_run(TurnCode("orders")) and node.programs.can_run(TurnCode("orders", 1))
    assert not node.programs.can_run(TurnCode("orders", 3))
    assert not node.programs.can_run(TurnCode("billing"))
    assert node.programs.code_for("orders") == TurnCode("orders", 2)
    await node.drain(0)
    assert not await is_ready()
    (worker,) = await store.programs.workers()
    assert (worker.id, worker.codes, worker.is_draining) == (node.id, [Code("orders", 2)], True)
    assert not node.programs.can_run(TurnCode("orders"))
    other = nodes.start()
    assert await other.programs.is_awaited("orders") and not await other.programs.is_awaited("billing")


async def test_user_of_a_turn_without_its_program_is_told_once_whichever_nodes_look(
    nodes: Nodes, store: Store
):
    bus = LocalBus()
    looking = [nodes.start(bus=bus) for _ in range(3)]
    begun, late = await make_begun(store), await make_begun(store, 2)
    for it in (begun, late):
        await store.turns.begin(opened(it, replace(DEAD, length_ms=-3_001)))
    follower = await looking[1].follow(begun.turn)
    assert follower is not None

    async def said(it: BegunTurn) -> list[Notice]:
        chunks = await store.log.read(it.turn.id, 0)
        events = [event for chunk in chunks for event in decode_chunk(chunk.events)]
        return [event.body for event in events if isinstance(event.body, Notice)]

    waiting = Notice("AGENT_ABSENT", "Waiting for the agent's program (orders) to connect.")
    async with follower:
        async for chunks in follower:  # who follows it on another node sees it without polling
            if any("AGENT_ABSENT" in chunk.events for chunk in chunks):
                break
    await until(lambda: all_told(said, begun, late))
    assert await store.absences.unnoted(limit=9) == []
    assert [await said(it) for it in (begun, late)] == [[waiting], [waiting]]
    assert dict(await store.absences.waiting()) == {"orders": 2}
    seen = await store.active.page(after=None, offset=0, limit=9, only=ActiveFilter(waits_for="worker"))
    assert [it.id for it in seen] == [begun.turn.id, late.turn.id]
    # Its program comes, and the turn ends with what its log says, the notice included.
    nodes.start(bus=bus, programs=FakePrograms(Code("orders", 2)))
    for it in (begun, late):
        await until(lambda it=it: has_ended(store, it))
    assert await store.absences.waiting() == {}


async def test_answered_turn_that_newer_code_began_waits_for_that_and_its_user_and_the_log_are_told_once(
    nodes: Nodes, store: Store, caplog: pytest.LogCaptureFixture
):
    node = nodes.start(programs=FakePrograms(Code("orders", 1)))
    begun = await make_begun(store, 2)
    await store.turns.begin(opened(begun))
    await store.log.pause(begun.turn.id, 1, ())
    held = await store.log.adopt_waiting(begun.turn.id, Lease(node.id, 1, -3_001))
    assert held is not None
    await until(lambda: any("waits" in it for it in caplog.messages))
    (told,) = [it for it in caplog.messages if "waits" in it]
    assert await store.absences.unnoted(limit=9) == []
    assert 'began with version 2 of agent "orders", and this node has version 1' in told
    chunks = await store.log.read(begun.turn.id, 0)
    assert sum("AGENT_ABSENT" in it.events for it in chunks) == 1


async def all_told(said: Callable[[BegunTurn], Awaitable[list[Notice]]], *turns: BegunTurn) -> bool:
    return all([await said(it) for it in turns])


async def test_nobody_is_told_of_a_turn_whose_program_is_there(nodes: Nodes, store: Store):
    begun = await make_begun(store, 2)
    await store.turns.begin(opened(begun, replace(DEAD, length_ms=-3_001)))
    await store.programs.note_seen("a", [Code("orders", 2)])  # it is merely busy with other turns
    assert await store.absences.unnoted(limit=9) == []
    await store.programs.note_seen("a", [Code("orders", 2)], WorkerState(is_open=False, blocked_ms=11_000))
    assert await store.absences.unnoted(limit=9) == [(begun.turn.id, TurnCode("orders", 2))]


async def test_each_wait_of_a_turn_is_told(nodes: Nodes, store: Store):
    begun = await make_begun(store, 2)
    await store.turns.begin(opened(begun, replace(DEAD, length_ms=-3_001)))

    def notice(absence: Absence) -> LogChunk:
        return LogChunk(absence.turn_id, absence.last_seq + 1, absence.last_seq + 1, "{}")

    assert await store.absences.note(begun.turn.id, notice) is not None
    assert await store.absences.note(begun.turn.id, notice) is None
    held = await store.log.adopt(begun.turn.id, DEAD, alone=False, codes=[Code("orders", 2)])
    assert held is not None and (held.fence, held.attempts) == (3, 1)  # its node was lost, as before
    await store.log.release(begun.turn.id, held.fence)
    assert await store.absences.note(begun.turn.id, notice) is None  # not yet
    assert await store.absences.note(begun.turn.id, notice, after_ms=-60_000) is not None


async def test_node_whose_programs_are_stuck_takes_no_turns_and_says_so(nodes: Nodes, store: Store):
    programs = FakePrograms(Code("orders", 2))
    node = nodes.start(programs=programs)

    async def workers() -> list[tuple[bool, int, bool]]:
        return [(it.is_open, it.blocked_ms, it.is_draining) for it in await store.programs.workers()]

    await node.programs.note_seen()
    assert await workers() == [(True, 0, False)]
    programs.blocked = BlockedLoop("orders", "shop.py:41 in find_order", 9_999)
    assert node.programs.can_run(TurnCode("orders")) and node.programs.stuck is None
    programs.blocked = replace(programs.blocked, ms=10_000)
    assert not node.programs.can_run(TurnCode("orders")) and node.programs.codes == ()
    assert node.programs.stuck == programs.blocked
    await node.programs.note_seen()
    assert await workers() == [(False, 10_000, False)]
    programs.blocked = None
    assert node.programs.can_run(TurnCode("orders"))
