"""Runs of other engines: their events until they are complete, then the turns they become."""

from collections.abc import Sequence

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.execution import ExecutionEvent, recorded_turn_id
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.ports.store import Recorded, RecordedRun, RecordRun
from threadkeep.storage.columns import to_json
from threadkeep.storage.conversations import LOCK, to_conversation
from threadkeep.storage.database import Database, Plan, Statement
from threadkeep.storage.turns import STATUS, add_recorded

_ADD = Statement(
    """INSERT INTO tk_executions (conversation_id, run_id, event_id, type, at, event)
    VALUES (:conversation_id, :run_id, :event_id, :type, :at, :event) ON CONFLICT DO NOTHING"""
)
_EVENTS = Statement(
    "SELECT event FROM tk_executions WHERE conversation_id = :conversation_id AND run_id = :run_id"
)
_FORGET = Statement("DELETE FROM tk_executions WHERE conversation_id = :conversation_id AND run_id = :run_id")

_decode_event = msgspec.json.Decoder(ExecutionEvent).decode


class SqlExecutions:
    """The runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Sequence[RecordedRun] | None:
        """Keeps events; a run that they complete becomes a turn in the same transaction."""
        return await self._database.write(lambda: _add(user_id, conversation_id, events, record))


def _add(
    user_id: UserId, conversation_id: ConversationId, events: Sequence[ExecutionEvent], record: RecordRun
) -> Plan[Sequence[RecordedRun] | None]:
    rows = yield LOCK(id=conversation_id, user_id=user_id)
    if not rows:
        return None
    conversation = to_conversation(rows[0])
    runs: list[RecordedRun] = []
    for run_id in dict.fromkeys(event.run_id for event in events):
        turn_id = recorded_turn_id(conversation_id, run_id)
        is_recorded = bool((yield STATUS(id=turn_id)))
        if not is_recorded:
            its_events = [event for event in events if event.run_id == run_id]
            recorded = yield from _add_to_run(conversation, run_id, its_events, record)
            if recorded is not None:
                conversation, is_recorded = recorded.ended.conversation, True
        runs.append(RecordedRun(run_id, turn_id if is_recorded else None))
    return runs


def _add_to_run(
    conversation: Conversation, run_id: str, events: Sequence[ExecutionEvent], record: RecordRun
) -> Plan[Recorded | None]:
    for event in events:
        yield _ADD(
            conversation_id=conversation.id,
            run_id=run_id,
            event_id=event.id,
            type=event.type,
            at=event.at,
            event=to_json(event),
        )
    told = yield _EVENTS(conversation_id=conversation.id, run_id=run_id)
    recorded = record(conversation, [_decode_event(text) for (text,) in told])
    if recorded is not None:
        yield from add_recorded(recorded)
        yield _FORGET(conversation_id=conversation.id, run_id=run_id)
    return recorded
