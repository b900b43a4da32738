"""The writer of logs: shown only after it is stored; with the database away nothing is lost or doubled."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest

from tests.making import ALICE, make_receipt, opened
from tests.services.running import Fault, FaultyLog, make_begun, shown_events, stored_events
from threadkeep import loops
from threadkeep.clock import system_clock
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import (
    EventBody,
    IterationStart,
    LogChunk,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import ConversationId, new_uuid
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Lease
from threadkeep.engine.journal import CallFinished, CallPaid, Dispatch, Dispatched, StepBegun
from threadkeep.engine.stop import TurnLost
from threadkeep.log import writer as log_writer
from threadkeep.log.format import decode_entries
from threadkeep.log.writer import LogWriter, TurnLog
from threadkeep.loops import Loops
from threadkeep.metrics import Histogram
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store

LEASE = Lease("a-node", 1, 10**9)


class Writing:
    """A writer, what it announced, and what goes wrong with it."""

    def __init__(self, store: Store, database: Database) -> None:
        self.store = store
        self.fault = Fault()
        self.announced: list[LogChunk] = []
        self.running = 50
        self.writer = LogWriter(
            FaultyLog(database, self.fault),
            system_clock,
            self._announce,
            Histogram(),
            lambda: self.running,
            Loops(),
        )

    async def _announce(self, chunks: Iterable[LogChunk]) -> None:
        self.announced += chunks

    async def open(self, *, fence: int = 1) -> TurnLog:
        """The log of a new turn."""
        begun = await make_begun(self.store)
        turn_log = self.writer.open(begun.turn, begun.conversation, fence)
        opening = turn_log.take(TurnStart.of(begun.turn))
        assert opening
        await self.store.turns.begin(opened(begun, LEASE, opening))
        turn_log.live.extend([opening])
        return turn_log

    async def bodies(self, turn_log: TurnLog) -> list[EventBody]:
        """What is stored, which is what was shown, after the turn's beginning."""
        opening, *events = await stored_events(self.store, turn_log.turn_id)
        assert shown_events(turn_log.live) == [opening, *events]
        return [event.body for event in events]


@pytest.fixture
async def writing(store: Store, database: Database) -> AsyncIterator[Writing]:
    writing = Writing(store, database)
    yield writing
    await writing.writer.close()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "FIRST_PAUSE_S", 0.001)


async def test_nothing_is_shown_before_it_is_stored(writing: Writing):
    turn_log = await writing.open()
    writing.fault.gate.clear()
    adding = asyncio.create_task(turn_log.add(Text("Hello"), at_once=True))
    await writing.fault.reached.wait()
    await asyncio.sleep(0.05)
    assert (turn_log.live.last_seq, writing.announced, adding.done()) == (1, [], False)
    assert await writing.store.log.read(turn_log.turn_id, 1) == []
    writing.fault.gate.set()
    await adding
    assert await writing.bodies(turn_log) == [Text("Hello")]
    assert [chunk.turn_id for chunk in writing.announced] == [turn_log.turn_id]


async def test_event_that_is_in_no_hurry_is_stored_soon(writing: Writing):
    turn_log = await writing.open()
    for text in ("Hel", "lo"):
        await turn_log.add(Text(text))
        await turn_log.live.changed()
    assert await writing.bodies(turn_log) == [Text("Hel"), Text("lo")]


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that rests longer after a flush than any test takes."""
    monkeypatch.setattr(log_writer, "REST_PER_OTHER_TURN", 1e9)
    monkeypatch.setattr(log_writer, "MOST_REST_S", 1e9)


@pytest.mark.usefixtures("long_rest")
async def test_idle_writer_stores_immediately_and_what_comes_while_it_rests_goes_together(writing: Writing):
    mine, other = await writing.open(), await writing.open()
    await mine.add(Text("a"))
    await mine.live.changed()
    for turn_log, text in ((mine, "b"), (other, "x"), (mine, "c"), (other, "y")):
        await turn_log.add(Text(text))
        await asyncio.sleep(0.01)
    assert (mine.live.last_seq, other.live.last_seq) == (2, 1)
    await writing.writer.flush(other)
    assert await writing.bodies(mine) == [Text("a"), Text("bc")]
    assert await writing.bodies(other) == [Text("xy")]
    assert len(writing.announced) == 3


async def test_receipt_is_stored_with_the_next_events_or_alone(writing: Writing):
    with_events, alone = await writing.open(), await writing.open()
    conversation_ids: dict[TurnLog, ConversationId] = {}
    for turn_log in (with_events, alone):
        turn = await writing.store.turns.get(ALICE, turn_log.turn_id)
        assert turn
        conversation_ids[turn_log] = turn.conversation_id
        turn_log.receipts[1] = TurnReceipt(turn.id, turn.conversation_id, make_receipt(), {"a": "prompt"})
    await with_events.add(IterationStart(1), at_once=True)
    await writing.writer.flush(alone)
    for turn_log, conversation_id in conversation_ids.items():
        assert not turn_log.receipts
        found = await writing.store.receipts.get(conversation_id, turn_log.turn_id)
        assert found == (make_receipt(), {"a": "prompt"})


async def test_receipt_of_a_turn_that_another_node_runs_is_not_stored(writing: Writing):
    lost = await writing.open(fence=2)
    turn = await writing.store.turns.get(ALICE, lost.turn_id)
    assert turn
    lost.receipts[1] = TurnReceipt(turn.id, turn.conversation_id, make_receipt(), {})
    with pytest.raises(TurnLost):
        await lost.add(IterationStart(1), at_once=True)
    assert await writing.store.receipts.get(turn.conversation_id, turn.id) is None


@pytest.mark.usefixtures("long_rest")
@pytest.mark.parametrize("urgent", [UsageReported(1, 1), ToolResultStored("1", "add", "ok", 3)])
async def test_finished_model_call_and_tool_result_and_what_is_urgent_end_the_rest(
    writing: Writing, urgent: EventBody
):
    turn_log = await writing.open()
    call = ToolCalled("1", "add", "", {})
    await turn_log.add(Text("a"))
    await turn_log.add(call, urgent)
    await turn_log.live.changed()
    assert await writing.bodies(turn_log) == [Text("a"), call, urgent]
    await turn_log.add(Text("b"), is_urgent=True)
    await turn_log.live.changed()
    assert (await writing.bodies(turn_log))[3:] == [Text("b")]


async def test_adjacent_pieces_that_are_stored_together_are_one_event(writing: Writing):
    turn_log = await writing.open()
    call = ToolCalled("1", "add", "", {})
    for body in (Thought("a"), Thought("b"), Text("c"), Text("d"), Text(""), Thought("e"), Text("f")):
        await turn_log.add(body)
    await turn_log.add(call, UsageReported(1, 1), at_once=True)
    await turn_log.add(Text("g"), at_once=True)
    await turn_log.add(Text("h"), at_once=True)
    assert await writing.bodies(turn_log) == [
        Thought("ab"), Text("cd"), Thought("e"), Text("f"), call, UsageReported(1, 1), Text("g"), Text("h")
    ]  # fmt: skip


async def test_model_call_is_stored_whole(writing: Writing):
    turn_log = await writing.open()
    call, finished = ToolCalled("1", "add", "", {}), CallFinished(1, "tool_use")
    await turn_log.add(Text("a"), at_once=True)
    await turn_log.add(call, Text("b"), finished, UsageReported(1, 1), at_once=True)
    assert await writing.bodies(turn_log) == [Text("a"), call, Text("b"), UsageReported(1, 1)]
    chunks = await writing.store.log.read(turn_log.turn_id, 0)
    assert [(it.first_seq, it.last_seq) for it in chunks] == [(1, 1), (2, 2), (3, 5)]


@pytest.mark.parametrize("seed", range(5))
async def test_entry_that_was_awaited_is_in_the_database(writing: Writing, seed: int):
    """Parallel model calls, tools and steps of one turn, in any interleaving."""
    chance = random.Random(seed)
    turn_log = await writing.open()

    async def run(lane: int) -> None:
        for number in range(10):
            name = f"{lane}.{number}"
            entries = chance.choice(
                [
                    (Text(name),),
                    (ToolCalled(name, "add", "", {}), CallFinished(1, "tool_use"), UsageReported(1, 1)),
                    (StepBegun(key=name, step_id=name, name="refund", kind="step"),),
                ]
            )
            is_awaited = chance.random() < 0.5
            await turn_log.add(*entries, at_once=is_awaited)
            if is_awaited:  # read as a second connection sees it
                stored = await writing.store.log.read(turn_log.turn_id, 0)
                assert name in "".join(chunk.events for chunk in stored)
            await asyncio.sleep(0)

    await asyncio.gather(*map(run, range(4)))


async def test_entries_of_the_journal_without_events_are_stored_with_those_before(writing: Writing):
    turn_log = await writing.open()
    dispatched = Dispatched((Dispatch("1"),))
    await turn_log.add(Text("a"), at_once=True)
    await turn_log.add(dispatched, at_once=True)
    await turn_log.add(Text("b"), at_once=True)
    assert await writing.bodies(turn_log) == [Text("a"), Text("b")]
    chunks = await writing.store.log.read(turn_log.turn_id, 0)
    entries = [entry for chunk in chunks for entry in decode_entries(chunk.events)]
    assert entries[2] == dispatched


async def test_entries_whose_first_try_was_stored_unnoticed_are_stored_once(writing: Writing):
    turn_log = await writing.open()
    await turn_log.add(Text("a"), at_once=True)
    await turn_log.add(Dispatched((Dispatch("1"),)))
    chunk = turn_log.take()
    assert chunk is not None
    for _ in range(2):
        assert await writing.store.log.append([(chunk, turn_log.fence)]) == {turn_log.turn_id}
    chunks = await writing.store.log.read(turn_log.turn_id, 0)
    entries = [entry for chunk in chunks for entry in decode_entries(chunk.events)]
    assert entries.count(Dispatched((Dispatch("1"),))) == 1


async def test_what_comes_during_a_write_goes_with_the_next(writing: Writing):
    turn_log = await writing.open()
    writing.fault.gate.clear()
    first = asyncio.create_task(turn_log.add(Text("a"), at_once=True))
    await writing.fault.reached.wait()
    await turn_log.add(Text("b"))
    await turn_log.add(Text("c"))
    second = asyncio.create_task(writing.writer.flush(turn_log))
    await asyncio.sleep(0)
    writing.fault.gate.set()
    await asyncio.gather(first, second)
    assert await writing.bodies(turn_log) == [Text("a"), Text("bc")]


async def test_settled_is_what_is_no_longer_on_its_way(writing: Writing):
    fault = writing.fault
    mine, other = await writing.open(), await writing.open()
    fault.gate.clear()
    first = asyncio.create_task(mine.add(Text("a"), at_once=True))
    await fault.reached.wait()
    settling = asyncio.create_task(writing.writer.settle(mine))
    await asyncio.sleep(0)
    await mine.add(Text("b"))
    hurrying = asyncio.create_task(other.add(Text("x"), at_once=True))
    await asyncio.sleep(0)
    fault.reached.clear()
    fault.gate.set()
    fault.gate.clear()  # the first write goes on, and the next one starts at once and waits
    await fault.reached.wait()
    await asyncio.sleep(0.05)
    assert (first.done(), settling.done(), mine.live.last_seq) == (True, False, 2)
    fault.gate.set()
    await asyncio.gather(first, settling, hurrying)
    assert await writing.bodies(mine) == [Text("a"), Text("b")]


async def test_what_could_not_be_stored_is_not_settled(writing: Writing, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", 0)
    turn_log = await writing.open()
    writing.fault.gate.clear()
    writing.fault.plan = ["before"]
    await turn_log.add(Text("a"))
    await writing.fault.reached.wait()
    settling = asyncio.create_task(writing.writer.settle(turn_log))
    await asyncio.sleep(0)
    writing.fault.gate.set()
    with pytest.raises(StorageUnavailable):
        await settling
    with pytest.raises(StorageUnavailable):
        await writing.writer.settle(turn_log)


async def test_turn_of_another_node_is_refused_and_the_others_are_stored(writing: Writing):
    mine, lost, too = await writing.open(), await writing.open(fence=2), await writing.open()
    for turn_log in (mine, lost, too):
        await turn_log.add(Text("x"))
    results = await asyncio.gather(*map(writing.writer.flush, (mine, lost, too)), return_exceptions=True)
    assert [type(it) for it in results] == [type(None), TurnLost, type(None)]
    assert [await writing.bodies(it) for it in (mine, lost, too)] == [[Text("x")], [], [Text("x")]]
    with pytest.raises(TurnLost):
        await lost.add(Text("y"))
    assert {chunk.turn_id for chunk in writing.announced} == {mine.turn_id, too.turn_id}


async def test_event_that_cannot_be_written_harms_its_own_turn_only(writing: Writing):
    good, bad = await writing.open(), await writing.open()
    await good.add(Text("x"))
    await bad.add(ToolCalled("1", "add", "", cast("Any", {"it": object()})))
    await bad.add(UsageReported(1, 1))
    results = await asyncio.gather(*map(writing.writer.flush, (good, bad)), return_exceptions=True)
    assert results[0] is None
    assert isinstance(results[1], TypeError)
    await good.add(Text("y"), at_once=True)
    assert await writing.bodies(good) == [Text("x"), Text("y")]
    assert await writing.bodies(bad) == []


@pytest.mark.parametrize("plan", [["before"], ["after"], ["before", "after", "before", "after", "after"]])
async def test_database_that_is_away_is_tried_again(writing: Writing, plan: list[str]):
    turn_log = await writing.open()
    writing.fault.plan = plan
    await turn_log.add(Text("a"), at_once=True)
    await turn_log.add(Text("b"), at_once=True)
    assert plan == []
    assert await writing.bodies(turn_log) == [Text("a"), Text("b")]


async def test_database_that_comes_and_goes_neither_loses_nor_doubles_anything(writing: Writing):
    chance = random.Random(3)
    logs = [await writing.open() for _ in range(3)]
    said = dict.fromkeys(logs, "")
    for number in range(60):
        writing.fault.plan = chance.choices(["before", "after", ""], k=chance.randrange(3))
        turn_log = chance.choice(logs)
        said[turn_log] += f"{number} "
        await turn_log.add(Text(f"{number} "), at_once=chance.random() < 0.5)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() / 50)
    writing.fault.plan = []
    for turn_log in logs:
        await writing.writer.flush(turn_log)
        bodies = await writing.bodies(turn_log)
        assert "".join(it.text for it in bodies if isinstance(it, Text)) == said[turn_log]


async def test_nothing_is_stored_after_what_could_not_be(writing: Writing, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", 0)
    turn_log, other = await writing.open(), await writing.open()
    writing.fault.gate.clear()
    writing.fault.plan = ["before"]
    adding = asyncio.create_task(turn_log.add(Text("a"), at_once=True))
    await writing.fault.reached.wait()
    await turn_log.add(Text("b"))  # and then the database is back
    writing.fault.gate.set()
    with pytest.raises(StorageUnavailable):
        await adding
    await other.add(Text("x"), at_once=True)
    assert await writing.bodies(turn_log) == []
    assert await writing.bodies(other) == [Text("x")]


async def test_database_that_stays_away_fails_the_turn_and_nothing_was_shown(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", 0.01)
    turn_log = await writing.open()
    writing.fault.away = True
    with pytest.raises(StorageUnavailable):
        await turn_log.add(Text("a"), at_once=True)
    with pytest.raises(StorageUnavailable):
        await turn_log.add(Text("b"))
    assert await writing.bodies(turn_log) == []
    assert writing.announced == []
    writing.fault.away = False
    another = await writing.open()
    await another.add(Text("x"), at_once=True)
    assert await writing.bodies(another) == [Text("x")]


async def test_writer_goes_on_after_a_failure_that_nobody_expected(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)
    broken, other = await writing.open(), await writing.open()

    def fail(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(broken.live, "extend", fail)
    with pytest.raises(ZeroDivisionError):  # at once: it must not wait for ever
        await broken.add(Text("lost?"), at_once=True)
    await other.add(Text("Hello"), at_once=True)
    assert await writing.bodies(other) == [Text("Hello")]


async def test_usage_of_parallel_calls_is_charged_to_the_call_that_it_is_of(writing: Writing):
    turn_log = await writing.open()
    ids = [new_uuid(), new_uuid()]
    for at, id_ in enumerate(ids, 1):
        turn_log.take(IterationStart(at))
        chunk = turn_log.take(CallPaid(id_, 1_000 * at), UsageReported(at, 0))
        assert chunk is not None
        assert [(it.reservation_id, it.at) for it in chunk.charges] == [(id_, 1_000 * at)]
    chunk = turn_log.take(UsageReported(3, 0))  # what the program has spent elsewhere reserved nothing
    assert chunk is not None and [it.reservation_id for it in chunk.charges] == [turn_log.turn_id]
