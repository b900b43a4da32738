"""Faults of the product, put in on purpose: the checker must find each, or it couldn't find a real one.

Each is one small change to one guarantee, in one place; `story` reaches the moment in which it matters.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from tests.proof.story import Story, draw
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import new_uuid
from threadkeep.engine.journal import Dispatched
from threadkeep.log.live import LiveLog
from threadkeep.log.writer import LogWriter, TurnLog
from threadkeep.mcp.agent_tools import TurnToolSession
from threadkeep.protocols.threadkeep import encode
from threadkeep.runtime import following
from threadkeep.runtime.running import NodeTurns
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.storage import approvals, queue, turn_log, turns
from threadkeep.storage.conversations import SqlConversations
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.queue import SqlQueue
from threadkeep.storage.spending import ledger
from threadkeep.storage.turns import SqlTurns

Breaking = Callable[[ExitStack], None]
"""Changes the product, until the stack is left."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault, and where it shows."""

    name: str
    breaks: Breaking
    seed: int
    """Of a story that shows it."""
    rule: str
    """Which rule finds it."""

    @property
    def story(self) -> Story:
        """Reaches the moment."""
        return draw(self.seed)

    @contextmanager
    def at_work(self) -> Generator[None]:
        """The product with the fault."""
        with ExitStack() as stack:
            self.breaks(stack)
            yield


def _set(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    stack.enter_context(patch.object(owner, name, value))


def _without(stack: ExitStack, statement: Statement, condition: str, instead: str) -> None:
    assert condition in statement.sqlite, f"{condition!r} isn't in {statement.sqlite}"
    _set(stack, statement, "sqlite", statement.sqlite.replace(condition, instead))


def _no_fence(stack: ExitStack) -> None:
    _without(stack, turn_log._APPEND, "AND fence = ?", "AND ? > 0")
    _without(stack, turn_log._APPEND_ALL, "AND turn.fence = chunk.fence", "")
    _without(stack, turn_log._ANNEX, "AND fence = ?", "AND ? > 0")
    _without(stack, turns._END_TURN, "AND fence = ?", "AND ? > 0")
    _set(stack, NodeTurns, "check_lease", lambda self, turn_id: None)


def _end_without_fence(stack: ExitStack) -> None:
    _without(stack, turns._END_TURN, "AND fence = ?", "AND ? > 0")


def _intent_after_the_write(stack: ExitStack) -> None:
    add = TurnLog.add

    async def without_intent(self: TurnLog, body: Any, *more: Any, **options: Any) -> None:
        if not isinstance(body, Dispatched):
            await add(self, body, *more, **options)

    _set(stack, TurnLog, "add", without_intent)


def _no_idempotency_key(stack: ExitStack) -> None:
    begin, add = SqlTurns.begin, SqlQueue.add

    async def nothing(self: Any, *_: Any) -> None:
        return None

    async def begin_without(self: SqlTurns, begun: Any) -> None:
        await begin(self, replace(begun, key=None))

    async def add_without(self: SqlQueue, message: Any, active_turn_id: Any, key: Any = None) -> None:
        await add(self, message, active_turn_id, None)

    _set(stack, SqlTurns, "find_by_key", nothing)
    _set(stack, SqlQueue, "find_by_key", nothing)
    _set(stack, SqlTurns, "begin", begin_without)
    _set(stack, SqlQueue, "add", add_without)


def _another_key_each_time(stack: ExitStack) -> None:
    call = TurnToolSession.call

    def with_another(self: TurnToolSession, tool: Any, arguments: Any, *, key: str, given: Any = None) -> Any:
        return call(self, tool, arguments, key=f"{key}/{new_uuid()}", given=given)

    _set(stack, TurnToolSession, "call", with_another)


def _order_of_delivery(stack: ExitStack) -> None:
    portions = following.portions
    _set(stack, following, "portions", lambda chunks: iter(list(portions(chunks))[::-1]))
    since = LiveLog.since

    def newest_first(self: LiveLog, seq: int) -> Sequence[LogChunk] | None:
        found = since(self, seq)
        return found and [*found][::-1]

    _set(stack, LiveLog, "since", newest_first)


def _skips_what_is_late(stack: ExitStack) -> None:
    since = LiveLog.since

    def only_the_newest(self: LiveLog, seq: int) -> Sequence[LogChunk] | None:
        found = since(self, seq)
        return found and found[-1:]

    _set(stack, LiveLog, "since", only_the_newest)


def _forgets_where_it_was(stack: ExitStack) -> None:
    follow = following.Following.follow

    async def from_the_start(self: Any, turn: Any, after: int = 0, **options: Any) -> Any:
        return await follow(self, turn, max(after - 1, 0), **options)

    _set(stack, following.Following, "follow", from_the_start)


def _release_without_fence(stack: ExitStack) -> None:
    _without(stack, ledger._RELEASE, "AND fence = ?", "AND ? IS NOT -1")


def _show_before_store(stack: ExitStack) -> None:
    append = LogWriter._append

    async def show_first(self: LogWriter, chunks: Any, receipts: Any) -> Any:
        for log, chunk in chunks:
            log.live.extend([chunk])
        return await append(self, chunks, receipts)

    _set(stack, LogWriter, "_append", show_first)


def _lost_wake_up(stack: ExitStack) -> None:
    _without(stack, turn_log._ANSWERED, "answered_at IS NOT NULL", "answered_at IS NOT NULL AND FALSE")


def _early_trim(stack: ExitStack) -> None:
    _without(stack, turn_log._LOCK_LOGGED, "has_log AND ended_at < ?", "has_log AND COALESCE(ended_at, 0) < ?")


def _reservation_never_settled(stack: ExitStack) -> None:
    charge = TurnLog._charge

    def unsettled(self: TurnLog, reported: Any, reported_at: int) -> Any:
        return replace(charge(self, reported, reported_at), reservation_id=new_uuid())

    _set(stack, TurnLog, "_charge", unsettled)


def _charged_twice(stack: ExitStack) -> None:
    number = TurnLog._number

    def twice(self: TurnLog, at: int, body: Any, charges: list[Any]) -> Any:
        before = len(charges)
        entry = number(self, at, body, charges)
        charges += [replace(it, id=new_uuid()) for it in charges[before:]]
        return entry

    _set(stack, TurnLog, "_number", twice)


def _budget_counts_only_what_is_spent(stack: ExitStack) -> None:
    def granted(reservation: Any, budgets: Any, former: Any) -> Any:
        return reservation.most
        yield

    _set(stack, ledger, "_reserve", granted)


def _end_ignores_the_queue(stack: ExitStack) -> None:
    _without(stack, turns._END_TURN, "queue_version = ?", "COALESCE(?, 0) >= 0")


def _steering_stays_queued(stack: ExitStack) -> None:
    def stays(message_ids: Any, now: int) -> Any:
        return
        yield

    _set(stack, queue, "_leave", stays)


def _two_answers(stack: ExitStack) -> None:
    approval = approvals._approval
    _set(stack, approvals, "_approval", lambda row: replace(approval(row), decision=None))


def _anybodys_conversations(stack: ExitStack) -> None:
    get = SqlConversations.get
    owner = Statement("SELECT user_id FROM tk_conversations WHERE id = :id")

    async def of_anybody(self: SqlConversations, user_id: Any, conversation_id: Any) -> Any:
        rows = await self._database.fetch(owner(id=conversation_id))
        return await get(self, rows[0][0] if rows else user_id, conversation_id)

    _set(stack, SqlConversations, "get", of_anybody)


def _steering_taken_without_a_trace(stack: ExitStack) -> None:
    async def shown_only(self: Any, held: Any, log: Any) -> Any:
        waiting = await self._store.queue.waiting(held.conversation.id)
        for message in waiting:
            await self._store.queue.remove(held.conversation.id, message.id, self._clock())
        return ()

    _set(stack, SteeringMessages, "take_in", shown_only)


def _takeover_starts_again(stack: ExitStack) -> None:
    _without(stack, turn_log._ADOPT, "fence = fence + 1", "fence = fence")


assert encode

MUTANTS = (
    Mutant("drop the fence", _no_fence, 0, ""),
    Mutant("an end without the fence", _end_without_fence, 0, ""),
    Mutant("the intent after the write", _intent_after_the_write, 0, ""),
    Mutant("no idempotency key", _no_idempotency_key, 0, ""),
    Mutant("another key for every attempt of a call", _another_key_each_time, 0, ""),
    Mutant("the newest is delivered first", _order_of_delivery, 0, ""),
    Mutant("a follower that is late gets only the newest", _skips_what_is_late, 0, ""),
    Mutant("a follower that comes back gets an event again", _forgets_where_it_was, 0, ""),
    Mutant("a release that isn't fenced", _release_without_fence, 0, ""),
    Mutant("show before store", _show_before_store, 0, ""),
    Mutant("a lost wake-up", _lost_wake_up, 0, ""),
    Mutant("an early trim", _early_trim, 0, ""),
    Mutant("a reservation is never settled", _reservation_never_settled, 0, ""),
    Mutant("a call is charged twice", _charged_twice, 0, ""),
    Mutant("a budget that doesn't count what is reserved", _budget_counts_only_what_is_spent, 0, ""),
    Mutant("an end that ignores the queue", _end_ignores_the_queue, 0, ""),
    Mutant("a message that steers stays queued", _steering_stays_queued, 0, ""),
    Mutant("a request that takes two answers", _two_answers, 0, ""),
    Mutant("conversations of anybody", _anybodys_conversations, 0, ""),
    Mutant("a message that steers is taken and not stored", _steering_taken_without_a_trace, 0, ""),
    Mutant("a takeover with the same fence", _takeover_starts_again, 0, ""),
)
