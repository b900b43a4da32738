"""Writes the logs of all turns of this node: an event is shown only after it is stored.

An event that arrives while the writer is idle is stored immediately. Text arrives hundreds of times a second
from many turns, so after each flush the writer rests: the longer, the longer the flush took and the more
turns run. The next flush stores everything that arrived meanwhile, from all turns. So a turn that runs alone
is shown without delay, and with many the writer is busy for a small share of the time.

A tool's result or a finished model call ends the rest; the latter is added as a whole (`Together` in
`engine/loop.py`), with all its tool calls, and so is stored whole or not at all. A turn's first event is
stored with its start, and what is pending when it ends with its end. The receipt of its request is stored
with the events after it, so the model is asked without waiting for that. What a model call cost goes into
the ledger in the commit that stores its usage event.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import TypeVar

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import (
    EventBody,
    IterationRestart,
    IterationStart,
    LogChunk,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
    joined,
)
from threadkeep.domain.ids import TurnId, new_uuid
from threadkeep.domain.ledger import Charge
from threadkeep.domain.money import Cost, Payer, Purpose, day_of, nested_payer
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn
from threadkeep.engine.fold import Folding
from threadkeep.engine.journal import (
    JOURNAL_ENTRIES,
    BegunByAdmin,
    CallPaid,
    JournalEntry,
    StateSaved,
)
from threadkeep.engine.stop import TurnLost
from threadkeep.log.format import LogEntry, encode_chunk
from threadkeep.log.live import LiveLog
from threadkeep.loops import Loops
from threadkeep.metrics import Histogram
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.turns")

T = TypeVar("T")

Written = EventBody | JournalEntry
Charged = Callable[[str | None, Cost | None], None]
"""Called for each model call that was charged: its model and its cost, if that is known."""

REST_PER_OTHER_TURN = 0.5
"""How long the writer rests after a flush for each other turn that runs here, in flushes.

A turn that runs alone never waits for the clock: what arrives during a flush is stored by the next one.
With fifty turns the rest reaches its maximum, and they share a flush every 25 ms.
"""
MOST_REST_S = 0.025
STORES_EACH = ContextVar("STORES_EACH", default=False)
"""Whether a writer that is made now stores each entry of a log at once, never several together.

So a turn has the same commits in every run: for tests that crash at one of them.
"""
GIVE_UP_AFTER_S = 30.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0


class TurnLog:
    """The log of one turn that runs on this node."""

    def __init__(
        self, turn_id: TurnId, payer: Payer, fence: int, clock: Clock, zone: tzinfo, writer: "LogWriter"
    ) -> None:
        self.turn_id = turn_id
        self.fence = fence
        self.called_at = 0
        """When the model was last called."""
        self._payer = payer
        self._zone = zone
        self.live = LiveLog(turn_id)
        self.folding = Folding()
        self.error: Exception | None = None
        self.receipts: dict[int, TurnReceipt] = {}
        """Of the turn's requests, by call, until they are stored."""
        self.state: bytes | None = None
        """What the turn's program keeps with the reply, stored with the turn's end."""
        self.saved: StateSaved | None = None
        """The last point at which its program saved that: it counts if the turn ends otherwise."""
        self.taken_at = 0
        """When the oldest event of the last taken chunk arrived."""
        self._clock = clock
        self._writer = writer
        self._paid: CallPaid | None = None
        """The model call of which the next usage event is, if the turn can make several at once."""
        self._pending: list[tuple[int, Written]] = []

    async def add(
        self, body: Written, *more: Written, at_once: bool = False, is_urgent: bool = False
    ) -> None:
        """Adds events or journal entries, which are stored together; with `at_once`, returns when they are.

        What is urgent ends the rest, as some entries do by themselves. Raises if they can't be stored.
        """
        if self.error is not None:
            raise self.error
        self._append(body)
        for other in more:
            self._append(other)
        if at_once or self._writer.stores_each:
            await self._writer.flush(self)
        else:
            last = more[-1] if more else body
            self._writer.schedule(self, urgent=is_urgent or _is_urgent(last))

    def _append(self, body: Written) -> None:
        """Joins adjacent pieces of text that are stored together into one event."""
        if self._pending:
            first_at, before = self._pending[-1]
            if (both := joined(before, body)) is not None:
                self._pending[-1] = first_at, both
                return
        self._pending.append((self._clock(), body))

    def take(self, *bodies: Written) -> LogChunk | None:
        """Numbers the pending events, and `bodies` after them, as the next chunk."""
        for body in bodies:
            self._append(body)
        due, self._pending = self._pending, []
        if not due:
            return None
        first = self.folding.last_seq + 1
        self.taken_at = due[0][0]
        try:
            charges: list[Charge] = []
            entries = [self._number(at, body, charges) for at, body in due]
            return LogChunk(self.turn_id, first, self.folding.last_seq, encode_chunk(entries), tuple(charges))
        except Exception as exc:  # later events would leave a gap
            self.error = exc
            raise

    def take_in(self, entry: LogEntry) -> None:
        """The next entry of the turn's stored log, before anything else is added; new events follow it."""
        if isinstance(entry, TurnEvent):
            self._fold(entry)
        else:
            self._note(entry)

    def _number(self, at: int, body: Written, charges: list[Charge]) -> LogEntry:
        """Numbers and folds an event; a journal entry has no number. Usage is charged with its event."""
        if isinstance(body, JOURNAL_ENTRIES):
            if isinstance(body, CallPaid):
                self._paid = body
            self._note(body)
            return body
        if isinstance(body, IterationRestart) and not body.from_seq:
            body = replace(body, from_seq=self.folding.call_seq)
        event = TurnEvent(self.turn_id, self.folding.last_seq + 1, at, body)
        if isinstance(body, UsageReported):
            charges.append(self._charge(body, at))
        self._fold(event)
        return event

    def _note(self, entry: JournalEntry) -> None:
        if isinstance(entry, StateSaved) and (entry.state_ref or bytes(entry.state)):
            self.saved = entry

    def _fold(self, event: TurnEvent) -> None:
        if isinstance(event.body, IterationStart | IterationRestart):
            self.called_at = event.at
        self.folding.add(event)

    def _charge(self, reported: UsageReported, reported_at: int) -> Charge:
        """The ledger's row of a model call, in the period in which it was made."""
        paid, self._paid = self._paid, None
        called_at = paid.at if paid else self.called_at or reported_at
        payer = self._payer if paid is None else nested_payer(self._payer, paid.agents)
        return Charge(
            id=new_uuid(),
            payer=payer,
            purpose=Purpose.TURN,
            model=reported.model,
            usage=reported.usage,
            at=called_at,
            day=day_of(called_at, self._zone),
            is_first=not self.folding.has_usage,
            reservation_id=paid.reservation_id if paid else self.turn_id,
            is_reported=paid is not None and paid.is_reported,
            reported_cost=paid.reported_cost if paid else None,
        )

    def show_stored(self, chunk: LogChunk, events: Sequence[TurnEvent]) -> None:
        """Shows the next chunk, which something other than the writer stored."""
        for event in events:
            self._fold(event)
        self.live.extend([chunk])


def opening_entries(turn: Turn, *, by_admin: bool) -> Sequence[Written]:
    """The first entries of a new turn's log."""
    return (TurnStart.of(turn), *([BegunByAdmin()] if by_admin else ()))


class LogWriter:
    """One task that stores what is pending in all logs."""

    def __init__(
        self,
        store: SqlTurnLog,
        clock: Clock,
        announce: Callable[[Iterable[LogChunk]], Awaitable[None]],
        lag: Histogram,
        running_count: Callable[[], int],
        loops: Loops,
        zone: tzinfo = UTC,
        charged: Charged = lambda model, cost: None,
    ) -> None:
        self.stores_each = STORES_EACH.get()
        self._zone = zone
        self._charged = charged
        self._lag = lag
        self._running_count = running_count
        self._store = store
        self._clock = clock
        self._announce = announce
        self._due: dict[TurnLog, asyncio.Future[None] | None] = {}
        """The logs with pending events, each with the future of anyone waiting for them to be stored."""
        self._storing: dict[TurnLog, asyncio.Future[None] | None] = {}
        """The same for events on their way to the database."""
        self._something_due = asyncio.Event()
        self._hurry = asyncio.Event()
        self._rested_at = 0.0
        """When the rest after the last flush is over."""
        self._loop = loops.start("writer of turn logs", self._write_due)

    def open(self, turn: Turn, conversation: Conversation, fence: int) -> TurnLog:
        """The log of a turn that begins on this node, or that this node has taken over."""
        payer = Payer(conversation.user_id, conversation.agent_id, turn.key_id)
        return TurnLog(turn.id, payer, fence, self._clock, self._zone, self)

    def schedule(self, turn_log: TurnLog, *, urgent: bool) -> None:
        """Schedules pending events for the next flush; an urgent one ends the writer's rest."""
        self._due.setdefault(turn_log)
        self._something_due.set()
        if urgent:
            self._hurry.set()

    async def flush(self, turn_log: TurnLog) -> None:
        """Stores pending events immediately; raises if that fails."""
        self.schedule(turn_log, urgent=True)
        await _done(self._due, turn_log)
        if turn_log.error is not None:
            raise turn_log.error

    async def settle(self, turn_log: TurnLog) -> None:
        """Waits until nothing is on its way to the database; raises if something couldn't be stored.

        Pending events stay pending, and can be taken and stored with something else.
        """
        while turn_log in self._storing:
            await _done(self._storing, turn_log)
        if turn_log.error is not None:
            raise turn_log.error

    def note_charges(self, chunk: LogChunk) -> None:
        """Reports the model calls that were charged with a chunk."""
        for charge in chunk.charges:
            self._charged(charge.model, charge.usage.cost)

    async def close(self) -> None:
        """Ends the task, after the turns have ended."""
        await end_tasks(self._loop.task)

    async def _write_due(self) -> None:
        now = asyncio.get_running_loop().time
        await self._something_due.wait()
        if not self._hurry.is_set() and self._rested_at > now():
            await _wait_at_most(self._hurry, self._rested_at - now())
        begun_at = now()
        await self._flush()
        flushed_at = now()
        others = max(self._running_count() - 1, 0)
        rest = (flushed_at - begun_at) * REST_PER_OTHER_TURN * others
        self._rested_at = flushed_at + min(rest, MOST_REST_S)

    async def _flush(self) -> None:
        """Stores everything due, of all turns together."""
        self._storing, self._due = self._due, {}
        self._something_due.clear()
        self._hurry.clear()
        try:
            await self._store_all(list(self._storing))
        except BaseException as exc:  # what was stored is unknown; a node that takes over reads it
            for turn_log in self._storing:
                turn_log.error = turn_log.error or _as_failure(exc)
            raise
        finally:
            stored, self._storing = self._storing, {}
            for waiter in stored.values():
                if waiter is not None and not waiter.done():
                    waiter.set_result(None)

    async def _store_all(self, logs: list[TurnLog]) -> None:
        chunks: dict[TurnLog, LogChunk] = {}
        receipts: list[tuple[TurnLog, TurnReceipt]] = []
        for turn_log in logs:
            if turn_log.error is not None:  # earlier events aren't stored: this would leave a gap
                continue
            try:
                if (chunk := turn_log.take()) is not None:
                    chunks[turn_log] = chunk
                receipts += ((turn_log, it) for it in turn_log.receipts.values())
            except Exception:  # must not harm other turns
                log.exception("couldn't write the log of turn %s", turn_log.turn_id)
        try:
            accepted = await self._append(list(chunks.items()), receipts)
        except Exception as exc:
            log.exception("couldn't store the logs of %d turns", len(chunks))
            for turn_log in (*chunks, *(it for it, _ in receipts)):
                turn_log.error = exc
            return
        for turn_log, receipt in receipts:
            if turn_log.receipts.get(receipt.call) is receipt:
                del turn_log.receipts[receipt.call]
        now = self._clock()
        for turn_log, chunk in chunks.items():
            if chunk.turn_id in accepted:
                turn_log.live.extend([chunk])
                self._lag.observe((now - turn_log.taken_at) / 1000)
                self.note_charges(chunk)
            else:
                turn_log.error = TurnLost()
        await self._announce(chunk for chunk in chunks.values() if chunk.turn_id in accepted)

    async def _append(
        self, chunks: list[tuple[TurnLog, LogChunk]], receipts: list[tuple[TurnLog, TurnReceipt]]
    ) -> set[TurnId]:
        """Stores chunks; retries while the database is unreachable, and shows nothing until then."""
        if not chunks and not receipts:
            return set()
        rows = [(chunk, turn_log.fence) for turn_log, chunk in chunks]
        fenced = [(receipt, turn_log.fence) for turn_log, receipt in receipts]
        return await persist(lambda: self._store.append(rows, fenced))


def _is_urgent(body: Written) -> bool:
    """Whether it ends the writer's rest: somebody waits for what comes after it."""
    return isinstance(body, UsageReported | ToolResultStored)


def _as_failure(exc: BaseException) -> Exception:
    return exc if isinstance(exc, Exception) else TurnLost()


async def _done(logs: dict[TurnLog, asyncio.Future[None] | None], turn_log: TurnLog) -> None:
    waiter = logs[turn_log] or asyncio.get_running_loop().create_future()
    logs[turn_log] = waiter
    await asyncio.shield(waiter)


async def persist(write: Callable[[], Awaitable[T]]) -> T:
    """Makes a read or write without which a turn ends: retries while the database is away, up to a time."""
    loop = asyncio.get_running_loop()
    give_up_at, pause = loop.time() + GIVE_UP_AFTER_S, FIRST_PAUSE_S
    while True:
        try:
            return await write()
        except StorageUnavailable as exc:
            if loop.time() + pause > give_up_at:
                raise
            log.warning("the database is away, retrying: %s", exc.message)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
