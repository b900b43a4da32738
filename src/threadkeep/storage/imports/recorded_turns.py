"""Turns that ran elsewhere: complete when they are stored, without a node or a lease, in nobody's way.

An import writes them row by row. A run of another engine becomes one in a single transaction: all that it
takes is encoded before, and a statement adds some hundred calls.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn
from threadkeep.storage.conversations import ADVANCE, advance_values
from threadkeep.storage.database.columns import to_json_or_null
from threadkeep.storage.database.connector import Plan, Statement
from threadkeep.storage.messages import ADD_MESSAGE, message_values
from threadkeep.storage.parts import calls_in
from threadkeep.storage.text_bytes import ROW_BYTES, call_bytes, message_bytes
from threadkeep.storage.tool_calls import ADD_TOOL_CALLS, tool_call_values, tool_calls_json
from threadkeep.storage.turns import ADD_CHUNK, run_key

CALLS_AT_ONCE = 200
"""Rows of one statement, whose parameter is a JSON text."""

ADD_ENDED_TURN = Statement(
    """INSERT INTO tk_turns (id, conversation_id, user_id, user_message_id, assistant_message_id, origin,
        status, model, usage, error, idempotency_key, last_event_seq, started_at, ended_at)
    VALUES (:id, :conversation_id, :user_id, :user_message_id, :assistant_message_id, :origin, :status,
        :model, :usage, :error, :key, :last_event_seq,
        :started_at, :ended_at)"""
)
# The conversation need not be free.
_ADVANCE = Statement(ADVANCE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of another engine as a turn with its log; its messages have no place in the conversation yet."""

    turn: Turn
    user_message: Message
    reply: Message
    title: str | None
    """The conversation's, unless it has one."""
    chunks: Sequence[LogChunk]


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """What is stored of a recorded turn, encoded beforehand."""

    recorded: Recorded
    reply: dict[str, Any]
    calls: Sequence[str]
    text_bytes: int
    """Of all but the question."""


def ended_turn_values(turn: Turn, user_id: UserId | None, run_id: str | None) -> dict[str, Any]:
    """The parameters of ADD_ENDED_TURN; the turn's tokens count for that user."""
    values = {name: getattr(turn, name) for name in turn.__slots__}
    return values | {
        "user_id": user_id,
        "usage": to_json_or_null(turn.usage),
        "error": to_json_or_null(turn.error),
        "key": run_key(run_id) if run_id is not None else None,
    }


def recorded_rows(recorded: Recorded, conversation: Conversation) -> RecordedRows:
    """The rows of a turn; of the conversation it needs only whose it is."""
    calls = [
        tool_call_values(call, conversation, position)
        for position, call in enumerate(calls_in(recorded.reply.parts))
    ]
    reply = message_values(recorded.reply)
    size = 2 * ROW_BYTES + message_bytes(reply) + sum(map(call_bytes, calls))
    return RecordedRows(recorded, reply, list(_encoded(calls)), size)


def _encoded(calls: Sequence[dict[str, Any]]) -> Iterator[str]:
    for first in range(0, len(calls), CALLS_AT_ONCE):
        yield tool_calls_json(calls[first : first + CALLS_AT_ONCE])


def add_recorded(conversation: Conversation, run_id: str, rows: RecordedRows, now: int) -> Plan[Conversation]:
    """Adds a turn at the end of a locked conversation's path; returns the conversation with it."""
    recorded = rows.recorded
    turn = recorded.turn
    grown, asked = conversation.add_run(recorded.user_message, recorded.reply.id, now, title=recorded.title)
    asked_row = message_values(asked)
    size = rows.text_bytes + message_bytes(asked_row)
    if not (yield _ADVANCE(**advance_values(grown, asked, asked.parent_id, size))):
        raise StorageConflict("The conversation has changed since it was read.")
    yield ADD_ENDED_TURN(**ended_turn_values(turn, conversation.user_id, run_id))
    for chunk in recorded.chunks:
        yield ADD_CHUNK(
            turn_id=turn.id,
            first_seq=chunk.first_seq,
            last_event_seq=chunk.last_seq,
            events=chunk.events,
        )
    yield ADD_MESSAGE(**asked_row)
    yield ADD_MESSAGE(**rows.reply | {"seq": grown.last_seq})
    for calls in rows.calls:
        yield ADD_TOOL_CALLS(calls=calls)
    return grown
