"""Faults of the product, put in on purpose: the checker must find each, or it couldn't find a real one.

Each is one small change to one guarantee, in one place; `story` reaches the moment in which it matters.
"""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from tests.proof.directed import (
    answered_before_the_pause,
    killed_at,
    killed_before_a_write,
    many_at_once,
    one_turn,
    stalled_before_a_write,
    trimmed_while_it_runs,
    two_messages,
    with_budget,
)
from tests.proof.story import Story, draw
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import new_uuid
from threadkeep.engine.journal import Dispatched
from threadkeep.log.live import LiveLog
from threadkeep.log.writer import LogWriter, TurnLog
from threadkeep.mcp.agent_tools import TurnToolSession
from threadkeep.runtime import following
from threadkeep.runtime.running import NodeTurns
from threadkeep.runtime.steering import SteeringMessages
from threadkeep.storage import approvals, queue, turn_log, turns
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
    story: Story
    """Reaches the moment."""
    rule: str
    """Which rule finds it."""

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


_FIRST_WRITER_WINS = (
    "WHERE tk_turn_chunks.last_seq = excluded.last_seq AND tk_turn_chunks.events = excluded.events"
)


def _no_fence(stack: ExitStack) -> None:
    """Without it, the numbers of chunks still refuse a second writer, so those have to go, too."""
    for statement in (turn_log._APPEND, turn_log._APPEND_ALL):
        _without(
            stack,
            statement,
            "last_seq = excluded.last_seq\n",
            "last_seq = excluded.last_seq, events = excluded.events\n",
        )
        _without(stack, statement, _FIRST_WRITER_WINS, "")
    _without(stack, turn_log._APPEND, "AND fence = ?", "AND ? > 0")
    _without(stack, turn_log._APPEND_ALL, "AND turn.fence = chunk.fence", "")
    _without(stack, turn_log._ANNEX, "AND fence = ?", "AND ? > 0")
    _without(stack, turns._END_TURN, "AND fence = ?", "AND ? > 0")
    _set(stack, NodeTurns, "check_lease", lambda self, turn_id: None)


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
    _without(
        stack, turn_log._LOCK_LOGGED, "has_log AND ended_at < ?", "has_log AND COALESCE(ended_at, 0) < ?"
    )


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


def _steering_taken_without_a_trace(stack: ExitStack) -> None:
    async def shown_only(self: Any, held: Any, log: Any) -> Any:
        waiting = await self._store.queue.waiting(held.conversation.id)
        for message in waiting:
            await self._store.queue.remove(held.conversation.id, message.id, self._clock())
        return ()

    _set(stack, SteeringMessages, "take_in", shown_only)


MUTANTS = (
    Mutant("drop the fence", _no_fence, stalled_before_a_write("note; say", 3, 5.6), "no_effect_twice"),
    Mutant(
        "the intent after the write", _intent_after_the_write, killed_at(0.8, "note; say"), "no_effect_twice"
    ),
    Mutant("no idempotency key", _no_idempotency_key, draw(0), "every_message_once"),
    Mutant(
        "another key for every attempt",
        _another_key_each_time,
        killed_at(0.8, "mark; say"),
        "no_effect_twice",
    ),
    Mutant("the newest is delivered first", _order_of_delivery, draw(0), "followers_saw_the_log"),
    Mutant("who is late gets only the newest", _skips_what_is_late, draw(0), "followers_saw_the_log"),
    Mutant(
        "show before store",
        _show_before_store,
        killed_before_a_write("look; say", 2, seed=2),
        "followers_saw_the_log",
    ),
    Mutant("a lost wake-up", _lost_wake_up, answered_before_the_pause(), "everything_comes_to_rest"),
    Mutant("an early trim", _early_trim, trimmed_while_it_runs(), "logs_have_no_gap"),
    Mutant(
        "a reservation is never settled",
        _reservation_never_settled,
        with_budget(one_turn("say"), "10"),
        "money_is_right",
    ),
    Mutant("a call is charged twice", _charged_twice, one_turn("say"), "money_is_right"),
    Mutant(
        "a budget without reservations",
        _budget_counts_only_what_is_spent,
        many_at_once("0.001"),
        "no_budget_was_passed",
    ),
    Mutant(
        "an end that ignores the queue",
        _end_ignores_the_queue,
        two_messages("look; say", "say"),
        "nothing_is_left_over",
    ),
    Mutant(
        "what steers stays queued",
        _steering_stays_queued,
        two_messages("look; look; say", "say", "steer"),
        "every_message_once",
    ),
    Mutant(
        "a request takes two answers",
        _two_answers,
        replace(one_turn("ask; say", seed=6), decides="twice"),
        "nothing_is_left_over",
    ),
    Mutant(
        "what steers is taken and not stored",
        _steering_taken_without_a_trace,
        two_messages("look; look; say", "say", "steer"),
        "every_message_once",
    ),
)
