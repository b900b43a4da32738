"""Turns that ran elsewhere: another engine tells of them, and they become messages here."""

from collections.abc import Sequence

from threadkeep.dialects.events import encode_chunk
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound, InvalidRequest
from threadkeep.domain.execution import ExecutionEvent
from threadkeep.domain.ids import ConversationId, is_uuid
from threadkeep.domain.user import User
from threadkeep.engine.recording import record
from threadkeep.ports.store import Recorded, RecordedRun, Store
from threadkeep.ports.turn_log import LogChunk
from threadkeep.services import Clock
from threadkeep.services.turns import Turns

MOST_EVENTS_AT_ONCE = 1_000


class Executions:
    """The use cases of runs that another engine tells of."""

    def __init__(self, store: Store, turns: Turns, clock: Clock) -> None:
        self._store = store
        self._turns = turns
        self._clock = clock

    async def record(
        self, user: User, conversation_id: str, events: Sequence[ExecutionEvent]
    ) -> Sequence[RecordedRun]:
        """Keeps events, in any order and however often they are told; a complete run becomes a turn, once."""
        if len(events) > MOST_EVENTS_AT_ONCE:
            raise InvalidRequest(f"At most {MOST_EVENTS_AT_ONCE} events at once.", param="events")
        id_ = ConversationId(conversation_id.lower())
        found = await self._store.executions.add(user.id, id_, events, self._record) if is_uuid(id_) else None
        if found is None:
            raise ConversationNotFound
        if any(run.turn_id for run in found):
            await self._turns.announce_change(id_)
        return found

    def _record(self, conversation: Conversation, events: Sequence[ExecutionEvent]) -> Recorded | None:
        recorded = record(conversation, events, self._clock())
        if recorded is None:
            return None
        log = recorded.log
        chunk = LogChunk(recorded.ended.turn.id, 1, len(log), encode_chunk(log))
        return Recorded(recorded.user_message, recorded.ended, chunk)
