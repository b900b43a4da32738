"""Runs of other engines: their events until they are complete, then the turns they become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.execution import ExecutionEvent
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.storage.conversations import LOCK, ConversationRows
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length, count
from threadkeep.storage.turns import Recorded, add_recorded, run_key


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The status of another engine's run: its turn, once it is complete."""

    run_id: str
    turn_id: TurnId | None


RecordRun = Callable[[Conversation, Sequence[ExecutionEvent]], Recorded | None]
"""Turns a run's events into a turn, or None while it is incomplete; must be pure."""


# The same event may arrive more than once.
_ADD = Statement(
    """INSERT INTO tk_executions (conversation_id, run_id, event_id, type, at, event)
    VALUES (:conversation_id, :run_id, :event_id, :type, :at, :event) ON CONFLICT DO NOTHING"""
)
# In no order: the recording sorts them.
_EVENTS = Statement(
    "SELECT event FROM tk_executions WHERE conversation_id = :conversation_id AND run_id = :run_id"
)
# A run that has become a turn is complete; its key names the run.
_TURN = Statement(
    "SELECT id FROM tk_turns WHERE conversation_id = :conversation_id AND idempotency_key = :key"
)
# The run is a turn now, and its events are not read again.
_FORGET = Statement("DELETE FROM tk_executions WHERE conversation_id = :conversation_id AND run_id = :run_id")

_decode_event = msgspec.json.Decoder(ExecutionEvent).decode


class SqlExecutions:
    """The runs of a database."""

    def __init__(self, database: Database, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows

    async def add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Sequence[RecordedRun] | None:
        """Stores events, each once; a completed run becomes a turn. None without that conversation."""
        return await self._database.write(lambda: self._add(user_id, conversation_id, events, record))

    def _add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Plan[Sequence[RecordedRun] | None]:
        rows = yield LOCK(id=conversation_id, user_id=user_id)
        if not rows:
            return None
        conversation = self._rows.read(rows[0])
        runs: list[RecordedRun] = []
        for run_id in dict.fromkeys(event.run_id for event in events):
            found = yield _TURN(conversation_id=conversation_id, key=run_key(run_id))
            turn_id: TurnId | None = found[0][0] if found else None
            if turn_id is None:
                its_events = [event for event in events if event.run_id == run_id]
                recorded = yield from _add_to_run(conversation, run_id, its_events, record)
                if recorded is not None:
                    conversation, turn_id = recorded.ended.conversation, recorded.ended.turn.id
            runs.append(RecordedRun(run_id, turn_id))
        return runs


def _bytes(event: str) -> int:
    return ROW_BYTES + byte_length(event)


def _add_to_run(
    conversation: Conversation, run_id: str, events: Sequence[ExecutionEvent], record: RecordRun
) -> Plan[Recorded | None]:
    new_bytes = 0
    for event in events:
        text = to_json(event)
        is_new = yield _ADD(
            conversation_id=conversation.id,
            run_id=run_id,
            event_id=event.id,
            type=event.type,
            at=event.at,
            event=text,
        )
        new_bytes += _bytes(text) if is_new else 0
    rows = yield _EVENTS(conversation_id=conversation.id, run_id=run_id)
    recorded = record(conversation, [_decode_event(text) for (text,) in rows])
    if recorded is None:
        yield count(conversation.id, new_bytes)
    else:
        yield from add_recorded(recorded, run_id)
        yield _FORGET(conversation_id=conversation.id, run_id=run_id)
        yield count(conversation.id, new_bytes - sum(_bytes(text) for (text,) in rows))
    return recorded
