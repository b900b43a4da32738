"""Nodes: a turn is written by one of them, ends once, and is ended by another when its own is gone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.making import ALICE, chunk_of
from tests.services.running import (
    Fault,
    Script,
    begin,
    faulty,
    follow,
    make_begun,
    reply_of,
    run,
    stored_events,
    until_shown,
)
from threadkeep.clock import Clock, system_clock
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import (
    EventBody,
    Failed,
    Text,
    Thought,
    ToolCalled,
    ToolResulted,
    TurnEvent,
    UsageReported,
)
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.stop import Stop
from threadkeep.log import node as node_module
from threadkeep.log import writer as log_writer
from threadkeep.log.node import Node
from threadkeep.metrics import Metrics
from threadkeep.ports.bus import Signal
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import Lease, LogChunk
from threadkeep.storage.bus import LocalBus
from threadkeep.storage.database import Database, Statement
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import SqlTurns
from threadkeep.testing.waiting import until

DEAD = Lease("a-dead-node", 1, 0)
LEASE = Statement("SELECT lease_until FROM tk_turns WHERE id = :id")


@dataclass
class Nodes:
    """Makes nodes on one database; each is as far from the others as processes are, but for the bus."""

    store: Store
    database: Database
    made: list[Node] = field(default_factory=list[Node])

    def start(
        self,
        *,
        log: Fault | None = None,
        beginning: Fault | None = None,
        turns: Fault | None = None,
        bus: LocalBus | None = None,
        clock: Clock = system_clock,
        alone: bool = False,
    ) -> Node:
        """Another node."""
        store = faulty(self.store, self.database, log=log, beginning=beginning, turns=turns)
        self.made.append(Node(store, bus or LocalBus(), clock, Metrics(), alone=alone))
        return self.made[-1]


@pytest.fixture
async def nodes(store: Store, database: Database) -> AsyncIterator[Nodes]:
    nodes = Nodes(store, database)
    yield nodes
    for node in nodes.made:
        await node.close()


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(node_module, "BEAT_S", 0.02)


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that nobody runs any more is soon ended."""
    monkeypatch.setattr(node_module, "LEASE_MS", 100)


def kinds(events: list[TurnEvent]) -> list[str]:
    return [event.body.type for event in events]


async def test_turn_is_shown_as_it_is_stored_and_ends_with_its_message(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    following = asyncio.create_task(follow(node, begun.turn.id))
    script.say(Text("Be"), Text("cause."), UsageReported(7, 3), script.done())
    events = await following
    assert events == await stored_events(store, begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content, reply.token_count) == (MessageStatus.COMPLETED, "Because.", 3)
    assert await follow(node, begun.turn.id) == events  # afterwards, from the store
    assert script.closed


class DeafBus(LocalBus):
    """A bus that takes nothing."""

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Fails."""
        raise ConnectionError("nobody hears this")


async def test_turn_goes_on_where_nothing_can_be_announced(nodes: Nodes, store: Store):
    node = nodes.start(bus=DeafBus())
    begun, script = await run(node, store)
    script.say(Text("a"), ToolCalled("1", "add", "", {}), ToolResulted("1", "add", "ok", 1), script.done())
    assert kinds(await follow(node, begun.turn.id))[-1] == "done"
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED


async def test_end_is_not_shown_before_it_is_stored(nodes: Nodes, store: Store):
    fault = Fault()
    fault.gate.clear()
    node = nodes.start(turns=fault)
    begun, script = await run(node, store)
    following = asyncio.create_task(follow(node, begun.turn.id))
    script.say(Text("x"), script.done())
    await fault.reached.wait()
    async with node.watch(begun.turn.id) as live:
        await asyncio.sleep(0.05)
        assert (live.last_seq, live.ended) == (1, False)
    assert not following.done()
    fault.gate.set()
    assert kinds(await following) == ["turn_start", "text", "done"]
    assert (await reply_of(store, begun)).content == "x"


async def test_end_waits_for_what_is_on_its_way(nodes: Nodes, store: Store):
    fault, end = Fault(), Fault()
    fault.gate.clear()
    node = nodes.start(log=fault, turns=end)
    begun, script = await run(node, store)
    script.say(Text("a"))
    await fault.reached.wait()
    script.say(Text("b"), script.done())
    await asyncio.sleep(0.05)
    assert not end.reached.is_set()
    fault.gate.set()
    assert kinds(await follow(node, begun.turn.id)) == ["turn_start", "text", "text", "done"]
    assert (await reply_of(store, begun)).content == "ab"


@pytest.mark.parametrize("plan", [["before"], ["after"], ["before", "after", "before"]])
async def test_end_whose_answer_is_lost_happens_once(
    nodes: Nodes, store: Store, plan: list[str], caplog: pytest.LogCaptureFixture
):
    fault = Fault()
    fault.plan = plan
    node = nodes.start(turns=fault)
    begun, script = await run(node, store)
    script.say(Text("x"), script.done())
    assert kinds(await follow(node, begun.turn.id)) == ["turn_start", "text", "done"]
    assert plan == []
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED
    assert "taken over" not in caplog.text  # it was stored by ourselves


async def test_turn_is_followed_and_aborted_from_another_node(nodes: Nodes, store: Store):
    bus = LocalBus()
    here, there = nodes.start(bus=bus), nodes.start(bus=bus)
    begun, script = await run(there, store)
    script.say(Text("half"))
    following = asyncio.create_task(follow(here, begun.turn.id))
    await until_shown(here, begun.turn.id, 2)
    await here.abort(begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.CANCELLED, "half")
    assert await following == await stored_events(store, begun.turn.id)
    await here.abort(begun.turn.id)  # again, and from where it ran
    await there.abort(begun.turn.id)


@pytest.mark.parametrize(("store_of", "look"), [(SqlTurns, "status"), (SqlTurnLog, "read")])
async def test_follower_that_comes_just_when_a_turn_ends_sees_its_end(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch, store_of: Any, look: str
):
    here, there = nodes.start(), nodes.start()
    begun, script = await run(there, store)
    await until_shown(there, begun.turn.id, 1)
    looks = getattr(store_of, look)

    async def end_before(own_store: object, turn_id: TurnId, *rest: object) -> object:
        if not script.closed:
            script.say(Text("x"), script.done())
            await follow(there, turn_id)
        return await looks(own_store, turn_id, *rest)

    monkeypatch.setattr(store_of, look, end_before)
    assert kinds(await follow(here, begun.turn.id)) == ["turn_start", "text", "done"]


async def test_lost_signals_only_cost_time(nodes: Nodes, store: Store):
    here, there = nodes.start(), nodes.start()  # no bus between them
    begun, script = await run(there, store)
    following = asyncio.create_task(follow(here, begun.turn.id))
    script.say(Text("half"))
    await until_shown(here, begun.turn.id, 2)
    await here.abort(begun.turn.id)
    assert (await reply_of(store, begun)).status is MessageStatus.CANCELLED
    assert await following == await stored_events(store, begun.turn.id)


@pytest.mark.usefixtures("short_lease")
async def test_node_whose_turn_was_taken_over_writes_nothing_and_shows_the_others_end(
    nodes: Nodes, store: Store
):
    fault = Fault()
    fault.stalled = True  # its heart stands still, but it still writes
    stalled = nodes.start(log=fault)
    begun, script = await run(stalled, store)
    following = asyncio.create_task(follow(stalled, begun.turn.id))
    script.say(Text("shown "))
    await until_shown(stalled, begun.turn.id, 2)
    taken_over = await follow(nodes.start(), begun.turn.id)
    assert kinds(taken_over) == ["turn_start", "text", "usage", "error"]
    script.say(Text("too late"), script.done())
    assert await following == taken_over
    assert await stored_events(store, begun.turn.id) == taken_over
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.FAILED, "shown ")
    assert reply.error
    assert reply.error.code == "INTERRUPTED"
    assert script.closed


@pytest.mark.usefixtures("short_lease")
async def test_node_that_hears_that_its_turn_was_taken_over_stops_it(nodes: Nodes, store: Store):
    fault = Fault()
    fault.stalled = True
    stalled = nodes.start(log=fault)
    begun, script = await run(stalled, store)
    following = asyncio.create_task(follow(stalled, begun.turn.id))
    await until_shown(stalled, begun.turn.id, 1)
    taken_over = await follow(nodes.start(), begun.turn.id)
    fault.stalled = False  # its heart beats again
    assert await following == taken_over
    assert script.closed
    await reply_of(store, begun)


async def test_turn_of_a_dead_node_gets_every_open_call_closed(nodes: Nodes, store: Store):
    begun = await begin(store, DEAD)
    bodies = [
        Text("Let me see."),
        ToolCalled("1", "add", "math", {}),
        ToolCalled("2", "sub", "math", {}),
        ToolCalled("3", "mul", "math", {}),
        ToolResulted("2", "sub", "ok", 1),
    ]
    for chunk in (chunk_of(begun.turn.id, 2, *bodies[:1]), chunk_of(begun.turn.id, 3, *bodies[1:])):
        assert await store.log.append([(chunk, 1)])
    events = await stored_events(store, begun.turn.id)
    node = nodes.start()
    shown = await follow(node, begun.turn.id)
    assert shown[: len(events)] == events
    closed = [event.body for event in shown[len(events) :]]
    assert [(it.tool_call_id, it.status) for it in closed if isinstance(it, ToolResulted)] == [
        ("1", "interrupted"),
        ("3", "interrupted"),
    ]
    assert isinstance(closed[-1], Failed)
    reply = await reply_of(store, begun)
    assert [call.status for call in reply.tool_calls] == [
        ToolCallStatus.INTERRUPTED, ToolCallStatus.OK, ToolCallStatus.INTERRUPTED
    ]  # fmt: skip
    assert (reply.content, reply.usage and reply.usage.estimated) == ("Let me see.", True)
    late = LogChunk(begun.turn.id, shown[-1].seq + 1, shown[-1].seq + 1, "{}")
    assert await store.log.append([(late, 1)]) == set()  # the dead one comes back


async def test_turn_that_was_begun_and_never_ran_is_ended(nodes: Nodes, store: Store):
    begun = await begin(store, DEAD)
    events = await follow(nodes.start(), begun.turn.id)
    assert kinds(events) == ["turn_start", "error"]
    assert (await reply_of(store, begun)).content == ""


async def test_turn_that_this_very_node_forgot_is_ended(nodes: Nodes, store: Store):
    node = nodes.start()
    running, script = await run(node, store)  # it renews the leases of turns that do run
    begun = await begin(store, Lease(node.id, 1, 0))  # and never heard that this one was stored
    assert kinds(await follow(node, begun.turn.id)) == ["turn_start", "error"]
    script.say(Text("x"), script.done())
    await follow(node, running.turn.id)
    assert (await reply_of(store, running)).status is MessageStatus.COMPLETED


async def test_node_that_is_alone_waits_for_no_lease(nodes: Nodes, store: Store):
    begun = await begin(store, Lease("before-the-restart", 1, 10**9))
    assert kinds(await follow(nodes.start(alone=True), begun.turn.id)) == ["turn_start", "error"]


async def test_many_nodes_end_a_dead_ones_turns_once(nodes: Nodes, store: Store):
    turns = [await begin(store, DEAD) for _ in range(5)]
    started = [nodes.start() for _ in range(3)]
    for begun in turns:
        seen = await asyncio.gather(*(follow(node, begun.turn.id) for node in started))
        assert all(kinds(events) == ["turn_start", "error"] for events in seen)
        await reply_of(store, begun)


@pytest.mark.usefixtures("short_lease")
async def test_leases_are_renewed_while_the_dead_are_buried(nodes: Nodes, store: Store, database: Database):
    digging = Fault()
    digging.gate.clear()
    node = nodes.start(turns=digging)
    begun, script = await run(node, store)
    await begin(store, DEAD)
    await digging.reached.wait()  # and it takes longer than a lease

    async def lease_until() -> int:
        return (await database.fetch(LEASE(id=begun.turn.id)))[0][0]

    before = await lease_until()
    await until(lambda: _is_later(lease_until, before + 200))
    digging.gate.set()
    script.say(Text("x"), script.done())
    assert kinds(await follow(node, begun.turn.id)) == ["turn_start", "text", "done"]


async def _is_later(time: Callable[[], Awaitable[int]], than: int) -> bool:
    return await time() > than


@pytest.mark.parametrize("hours", [-2, 2])
async def test_clocks_of_nodes_may_differ(nodes: Nodes, store: Store, hours: int):
    """Neither lives a lease longer for it, nor is a running turn taken for a dead one's."""
    there = nodes.start()
    begun, script = await run(there, store)
    script.say(Thought("Hm."), ToolCalled("1", "add", "", {}))
    await until_shown(there, begun.turn.id, 2)
    dead = await begin(store, DEAD)
    thinking = chunk_of(dead.turn.id, 2, Thought("Hm."), ToolCalled("1", "add", "", {}), at=system_clock())
    assert await store.log.append([(thinking, 1)])
    here = nodes.start(clock=lambda: system_clock() + hours * 3_600_000)
    assert kinds(await follow(here, dead.turn.id))[-1] == "error"
    steps = (await reply_of(store, dead)).thought_process
    assert [step.kind for step in steps] == ["thought", "tool"]
    assert all(step.duration_ms >= 0 for step in steps)
    script.say(ToolResulted("1", "add", "ok", 1), Text("x"), script.done())
    assert kinds(await follow(here, begun.turn.id))[-1] == "done"
    turn = await store.turns.get(ALICE, dead.turn.id)
    assert turn
    assert turn.ended_at
    assert turn.ended_at >= turn.started_at


async def test_who_has_seen_the_end_is_not_counted_any_more(nodes: Nodes, store: Store):
    node = nodes.start()
    begun = await make_begun(store)
    script, tidied = Script(begun), asyncio.Event()

    async def events(stop: Stop) -> AsyncGenerator[EventBody]:
        async for body in script.events(stop):
            yield body
        await tidied.wait()

    await node.begin(begun, None, events)
    await until_shown(node, begun.turn.id, 1)
    assert (node.running_count, node.running_of(ALICE)) == (1, 1)
    script.say(Text("x"), script.done())
    await follow(node, begun.turn.id)
    assert (node.running_count, node.running_of(ALICE)) == (0, 0)
    tidied.set()


async def test_turn_that_we_break_fails(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"), ToolCalled("1", "add", "", {}), ZeroDivisionError())
    events = await follow(node, begun.turn.id)
    assert kinds(events) == ["turn_start", "text", "tool_call", "tool_result", "usage", "error"]
    reply = await reply_of(store, begun)
    assert reply.error
    assert (reply.error.code, reply.content) == ("INTERNAL_ERROR", "half")


async def test_turn_that_we_break_keeps_and_counts_what_was_on_the_point_of_being_stored(
    nodes: Nodes, store: Store
):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"), ZeroDivisionError())
    assert kinds(await follow(node, begun.turn.id)) == ["turn_start", "text", "usage", "error"]
    reply = await reply_of(store, begun)
    assert (reply.content, reply.usage and reply.usage.estimated) == ("half", True)


@pytest.mark.usefixtures("short_lease")
async def test_event_that_cannot_be_written_fails_the_turn(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"), ToolCalled("1", "add", "", {"it": object()}))
    events = await follow(node, begun.turn.id)
    assert kinds(events)[-1] == "error"
    assert (await reply_of(store, begun)).status is MessageStatus.FAILED


@pytest.mark.usefixtures("short_lease")
async def test_database_that_stays_away_fails_the_turn_when_it_is_back(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", 0.01)
    fault = Fault()
    node = nodes.start(log=fault, turns=fault, alone=True)
    begun, script = await run(node, store)
    following = asyncio.create_task(follow(node, begun.turn.id))
    script.say(Text("shown"))
    await until_shown(node, begun.turn.id, 2)
    fault.away = True
    script.say(Text("never stored"), script.done())
    while not script.closed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not following.done()
    fault.away = False
    assert await following == await stored_events(store, begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.FAILED, "shown")


async def test_closing_ends_turns_and_keeps_what_they_said(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"))
    following = asyncio.create_task(follow(node, begun.turn.id))
    await until_shown(node, begun.turn.id, 2)
    await node.close()
    nodes.made.remove(node)
    assert isinstance((await following)[-1].body, Failed)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.FAILED, "half")
    assert script.closed


def slow_beginning() -> Fault:
    """A database that takes its time to store how a turn begins."""
    fault = Fault()
    fault.gate.clear()
    return fault


async def test_turn_is_begun_though_whoever_asked_for_it_goes_meanwhile(nodes: Nodes, store: Store):
    fault = slow_beginning()
    node = nodes.start(beginning=fault)
    begun = await make_begun(store)
    script = Script(begun)
    script.say(Text("x"), script.done())
    asking = asyncio.create_task(node.begin(begun, None, script.events))
    await fault.reached.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert node.running_of(ALICE) == 1
    fault.gate.set()
    await until(lambda: script.closed)
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED


async def test_turn_whose_beginning_is_stored_but_not_answered_is_run(nodes: Nodes, store: Store):
    fault = Fault()
    fault.plan = ["after"]
    begun, script = await run(nodes.start(beginning=fault), store)
    script.say(Text("x"), script.done())
    await until(lambda: script.closed)
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED


async def test_turn_whose_beginning_is_not_stored_is_not_run(nodes: Nodes, store: Store):
    fault = Fault()
    fault.plan = ["before"]
    node = nodes.start(beginning=fault)
    with pytest.raises(StorageUnavailable):
        await run(node, store)
    assert (node.running_count, node.running_of(ALICE)) == (0, 0)


@pytest.mark.parametrize("end", ["drain", "close"])
async def test_turn_that_begins_while_its_node_ends_is_ended_too(nodes: Nodes, store: Store, end: str):
    fault = slow_beginning()
    node = nodes.start(beginning=fault)
    beginning = asyncio.create_task(run(node, store))
    await fault.reached.wait()
    ending = asyncio.create_task(node.drain(0) if end == "drain" else node.close())
    await until(lambda: node.is_draining)
    fault.gate.set()
    begun, _ = await beginning
    await ending
    if end == "close":
        nodes.made.remove(node)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.error and reply.error.code) == (MessageStatus.FAILED, "INTERRUPTED")


async def test_log_of_a_turn_whose_end_could_not_be_stored_is_closed_but_has_not_ended(
    nodes: Nodes, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(node_module, "CLOSE_S", 0.01)
    fault = Fault()
    node = nodes.start(log=fault, turns=fault)
    begun, _ = await run(node, store)
    async with node.watch(begun.turn.id) as live:
        fault.away = True
        await node.close()
        nodes.made.remove(node)
        assert (live.closed, live.ended) == (True, False)


async def test_log_of_a_turn_that_goes_on_elsewhere_is_closed_with_its_followers_node(
    nodes: Nodes, store: Store
):
    there, here = nodes.start(), nodes.start()
    begun, _ = await run(there, store)
    async with here.watch(begun.turn.id) as live:
        await here.close()
        nodes.made.remove(here)
        assert (live.closed, live.ended) == (True, False)


async def test_log_of_a_turn_that_is_gone_is_closed_but_has_not_ended(nodes: Nodes, store: Store):
    begun = await make_begun(store)  # which is not stored
    async with nodes.start().watch(begun.turn.id) as live:
        await until(lambda: live.closed)
        assert not live.ended


async def test_dead_turn_whose_log_cannot_be_read_is_ended_with_what_can_and_holds_up_no_other(
    nodes: Nodes, store: Store
):
    dead = [await begin(store, DEAD) for _ in range(2)]
    strange_id, strange = dead[0].turn.id, '{"type": "of a later version"}'
    said, lost = chunk_of(strange_id, 2, Text("said")), chunk_of(strange_id, 5, Text("lost"))
    for chunk in (said, LogChunk(strange_id, 3, 4, strange), lost):
        assert await store.log.append([(chunk, 1)])
    nodes.start()
    for begun in dead:
        await until(lambda it=begun: is_ended(store, it))
    reply = await store.messages.get(dead[0].assistant_message.id)
    assert reply
    assert (reply.content, reply.error and reply.error.code) == ("said", "INTERRUPTED")
    (end,) = await store.log.read(strange_id, lost.last_seq)
    assert end.first_seq == lost.last_seq + 1


async def is_ended(store: Store, begun: BegunTurn) -> bool:
    return await store.turns.status(begun.turn.id) is not TurnStatus.RUNNING
