"""Running: a turn begins, is shown as it is stored, and ends once, whatever fails meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace

import pytest

from tests.making import ALICE, NOW
from tests.runtime.nodes import Nodes, kinds
from tests.services.running import (
    Fault,
    Script,
    begin,
    follow,
    make_begun,
    open_log,
    reply_of,
    run,
    stored_events,
    until_shown,
)
from threadkeep.domain.conversation import WaitingEnd
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import (
    Notice,
    Retrieval,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    UsageReported,
)
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.turn import Lease, Turn
from threadkeep.engine.journal import Dispatch, Dispatched
from threadkeep.engine.loop import TurnStep
from threadkeep.log import writer as log_writer
from threadkeep.log.format import decode_chunk
from threadkeep.ports.bus import Signal
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.node import Node
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.runtime.turn_ends import TurnEnds
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.testing.waiting import until


async def test_turn_is_shown_as_it_is_stored_and_ends_with_its_message(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    following = asyncio.create_task(follow(node, begun.turn))
    script.say(Text("Be"), Text("cause."), UsageReported(7, 3), script.done())
    events = await following
    assert events == await stored_events(store, begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content, reply.token_count) == (MessageStatus.COMPLETED, "Because.", 3)
    assert await follow(node, begun.turn) == events  # afterwards, from the store
    assert script.closed


class DeafBus(LocalBus):
    """A bus that takes nothing."""

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Fails."""
        raise ConnectionError("nobody hears this")


async def test_turn_goes_on_where_nothing_can_be_announced(nodes: Nodes, store: Store):
    node = nodes.start(bus=DeafBus())
    begun, script = await run(node, store)
    script.say(
        Text("a"), ToolCalled("1", "add", "", {}), ToolResultStored("1", "add", "ok", 1), script.done()
    )
    assert kinds(await follow(node, begun.turn))[-1] == "done"
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED


async def test_end_is_not_shown_before_it_is_stored(nodes: Nodes, store: Store):
    fault = Fault()
    fault.gate.clear()
    node = nodes.start(turns=fault)
    begun, script = await run(node, store)
    following = asyncio.create_task(follow(node, begun.turn))
    script.say(Text("x"), script.done())
    await fault.reached.wait()
    assert kinds(await shown_for_a_moment(node, begun.turn)) == ["turn_start"]
    assert not following.done()
    fault.gate.set()
    assert kinds(await following) == ["turn_start", "text", "done"]
    assert (await reply_of(store, begun)).content == "x"


async def shown_for_a_moment(node: Node, turn: Turn) -> list[TurnEvent]:
    """What a follower is shown who looks for a moment."""
    seen: list[TurnEvent] = []
    async with await open_log(node, turn) as log:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                async for chunks in log:
                    seen += [event for chunk in chunks for event in decode_chunk(chunk.events)]
        assert not log.has_ended
    return seen


@pytest.mark.parametrize(
    "opening",
    [Retrieval("Why?", (RetrievalHit("a.md", "Because.", 1.0),)), Notice("DEGRADED", "By keyword.")],
)
async def test_turn_goes_on_only_when_what_comes_before_its_request_is_stored(
    nodes: Nodes, store: Store, opening: Retrieval | Notice
):
    fault = Fault()
    fault.gate.clear()
    node = nodes.start(log=fault)
    begun, script = await run(node, store)
    script.say(opening, Text("x"), script.done())
    await fault.reached.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    unsaid = script.unsaid
    fault.gate.set()
    assert unsaid == 2
    assert kinds(await follow(node, begun.turn)) == ["turn_start", opening.type, "text", "done"]


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
    assert kinds(await follow(node, begun.turn)) == ["turn_start", "text", "text", "done"]
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
    assert kinds(await follow(node, begun.turn)) == ["turn_start", "text", "done"]
    assert plan == []
    assert (await reply_of(store, begun)).status is MessageStatus.COMPLETED
    assert "took over" not in caplog.text  # it was stored by ourselves


async def test_who_has_seen_the_end_is_not_counted_any_more(nodes: Nodes, store: Store):
    node = nodes.start()
    begun = await make_begun(store)
    script, tidied = Script(begun), asyncio.Event()

    async def steps(held: HeldTurn, control: TurnControl) -> AsyncGenerator[TurnStep]:
        async for step in script.steps(held, control):
            yield step
        await tidied.wait()

    await node.runner.begin(begun, TurnCourse(steps))
    await until_shown(node, begun.turn, 1)
    assert (node.running_count, node.runner.count_of(ALICE)) == (1, 1)
    script.say(Text("x"), script.done())
    await follow(node, begun.turn)
    assert (node.running_count, node.runner.count_of(ALICE)) == (0, 0)
    tidied.set()


async def test_turn_that_we_break_fails(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"), ToolCalled("1", "add", "", {}), ZeroDivisionError())
    events = await follow(node, begun.turn)
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
    assert kinds(await follow(node, begun.turn)) == ["turn_start", "text", "usage", "error"]
    reply = await reply_of(store, begun)
    assert (reply.content, reply.usage and reply.usage.estimated) == ("half", True)


@pytest.mark.usefixtures("short_lease")
async def test_event_that_cannot_be_written_fails_the_turn(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    call = ToolCalled("1", "add", "", {"it": object()})
    script.say(Text("half"), call, UsageReported(1, 1), Dispatched((Dispatch("1"),)))
    events = await follow(node, begun.turn)
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
    following = asyncio.create_task(follow(node, begun.turn))
    script.say(Text("shown"))
    await until_shown(node, begun.turn, 2)
    fault.away = True
    script.say(Text("never stored"), script.done())
    while not script.closed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not following.done()
    fault.away = False
    assert await following == await stored_events(store, begun.turn.id)
    reply = await reply_of(store, begun)
    assert (reply.status, reply.content) == (MessageStatus.FAILED, "shown")


async def test_closing_hands_turns_off_and_keeps_what_they_said(nodes: Nodes, store: Store):
    node = nodes.start()
    begun, script = await run(node, store)
    script.say(Text("half"))
    await until_shown(node, begun.turn, 2)
    await node.close()
    nodes.made.remove(node)
    assert script.closed
    assert kinds(await stored_events(store, begun.turn.id)) == ["turn_start", "text"]
    held = await store.log.adopt(begun.turn.id, Lease("another-node", 1, 10**9), alone=False)
    assert held  # at once, and without a loss
    assert held.attempts == 0


def slow_beginning() -> Fault:
    """A database that takes its time to store how a turn begins."""
    fault = Fault()
    fault.gate.clear()
    return fault


async def test_turn_is_begun_though_its_request_is_cancelled_meanwhile(nodes: Nodes, store: Store):
    fault = slow_beginning()
    node = nodes.start(beginning=fault)
    begun = await make_begun(store)
    script = Script(begun)
    script.say(Text("x"), script.done())
    asking = asyncio.create_task(node.runner.begin(begun, TurnCourse(script.steps)))
    await fault.reached.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert node.runner.count_of(ALICE) == 1
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
    assert (node.running_count, node.runner.count_of(ALICE)) == (0, 0)


@pytest.mark.parametrize("end", ["drain", "close"])
async def test_turn_counts_and_is_waited_for_between_its_stored_start_and_its_run(
    nodes: Nodes, store: Store, end: str, monkeypatch: pytest.MonkeyPatch
):
    node, announced, gate = nodes.start(), asyncio.Event(), asyncio.Event()

    async def announce_slowly(turn_ends: TurnEnds, end: WaitingEnd) -> None:
        announced.set()
        await gate.wait()

    monkeypatch.setattr(TurnEnds, "announce_end", announce_slowly)
    before = await begin(store, Lease("another-node", 1, 10**9))
    assert await store.log.pause(before.turn.id, 1, [new_uuid()]) == "paused"
    waiting_end = await node.end_of_waiting(before.turn.id)
    assert waiting_end
    begun = waiting_end.ended.conversation.begin_turn("And?", NOW, model="scripted")
    script = Script(begun)
    new = replace(begun, waiting_end=waiting_end)
    beginning = asyncio.create_task(node.runner.begin(new, TurnCourse(script.steps)))
    await announced.wait()
    assert node.runner.count_of(ALICE) == 1
    ending = asyncio.create_task(node.drain(0) if end == "drain" else node.close())
    await until(lambda: node.runner.is_draining)
    assert not ending.done()
    gate.set()
    await beginning
    await ending
    if end == "close":
        nodes.made.remove(node)
    assert script.closed
    assert await store.log.adopt(begun.turn.id, Lease("another-node", 1, 10**9), alone=False)


@pytest.mark.parametrize("end", ["drain", "close"])
async def test_turn_that_begins_while_its_node_ends_is_handed_off_too(nodes: Nodes, store: Store, end: str):
    fault = slow_beginning()
    node = nodes.start(beginning=fault)
    beginning = asyncio.create_task(run(node, store))
    await fault.reached.wait()
    ending = asyncio.create_task(node.drain(0) if end == "drain" else node.close())
    await until(lambda: node.runner.is_draining)
    fault.gate.set()
    begun, _ = await beginning
    await ending
    if end == "close":
        nodes.made.remove(node)
    assert await store.log.adopt(begun.turn.id, Lease("another-node", 1, 10**9), alone=False)
