"""Turns that ran in another engine and become messages here."""

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound, InvalidRequest, PayloadTooLarge
from threadkeep.domain.events import LogChunk
from threadkeep.domain.execution import ExecutedTool, ExecutionEvent
from threadkeep.domain.ids import ConversationId, PayloadId, is_uuid
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.engine.large_values import LargeValues, TooLarge
from threadkeep.log.format import encode_chunk
from threadkeep.log.replies import events_of
from threadkeep.services.history import History
from threadkeep.services.recording import record
from threadkeep.services.turns import Turns
from threadkeep.storage.executions import RecordedRun
from threadkeep.storage.store import Store
from threadkeep.storage.turns import Recorded

MOST_EVENTS_AT_ONCE = 1_000


class Executions:
    """The use cases of recorded runs."""

    def __init__(self, store: Store, turns: Turns, history: History, clock: Clock) -> None:
        self._store = store
        self._turns = turns
        self._history = history
        self._clock = clock

    async def record(
        self, user: User, conversation_id: str, events: Sequence[ExecutionEvent]
    ) -> Sequence[RecordedRun]:
        """Stores events, in any order and any number of times; a complete run becomes a turn, once."""
        if len(events) > MOST_EVENTS_AT_ONCE:
            raise InvalidRequest(
                f"You can send at most {MOST_EVENTS_AT_ONCE} events at once.", param="events"
            )
        id_ = ConversationId(conversation_id.lower())
        conversation = await self._store.conversations.get(user.id, id_) if is_uuid(id_) else None
        if conversation is None:
            raise ConversationNotFound
        events = await self._set_aside(id_, await self._with_files(id_, events))
        found = await self._store.executions.add(user.id, id_, events, self._record)
        if found is None:  # deleted meanwhile
            raise ConversationNotFound
        if any(run.turn_id for run in found):
            self._history.note(id_)
            await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)
        return found

    async def _with_files(
        self, id_: ConversationId, events: Sequence[ExecutionEvent]
    ) -> Sequence[ExecutionEvent]:
        """Events with their artifacts: files of this conversation, and ids that only the engine knows.

        The id of a file that belongs to somebody else is such an id, too.
        """
        named = {it for event in events for it in event.artifact_ids}
        ids = (PayloadId(it.lower()) for it in named if is_uuid(it))
        own = await self._store.payloads.artifacts(id_, ids)

        def file(artifact_id: str) -> FilePart:
            payload = own.get(PayloadId(artifact_id.lower()))
            return _elsewhere(artifact_id) if payload is None else _file(payload)

        return [replace(event, files=tuple(map(file, event.artifact_ids))) for event in events]

    async def _set_aside(
        self, id_: ConversationId, events: Sequence[ExecutionEvent]
    ) -> Sequence[ExecutionEvent]:
        """Events with their large tool values moved to the payload store, like those of our own turns."""
        large_values = LargeValues(id_, self._clock, self._store.payloads.add)
        try:
            return [
                replace(
                    event, tools=tuple([await _without_large(tool, large_values) for tool in event.tools])
                )
                for event in events
            ]
        except TooLarge as exc:
            raise PayloadTooLarge(str(exc), param="tools") from exc

    def _record(self, conversation: Conversation, events: Sequence[ExecutionEvent]) -> Recorded | None:
        recorded = record(conversation, events, self._clock())
        if recorded is None:
            return None
        ended = recorded.ended
        log = list(events_of(ended.turn, ended.assistant_message))
        chunk = LogChunk(ended.turn.id, 1, len(log), encode_chunk(log))
        ended = replace(ended, turn=replace(ended.turn, last_event_seq=len(log)))
        return Recorded(recorded.user_message, ended, chunk)


def _file(payload: Payload) -> FilePart:
    return FilePart(
        file_id=payload.id,
        file_name=payload.file_name or "",
        media_type=payload.media_type,
        size=payload.size,
    )


def _elsewhere(artifact_id: str) -> FilePart:
    return FilePart(file_id=PayloadId(artifact_id), is_elsewhere=True)


async def _without_large(tool: ExecutedTool, large_values: LargeValues) -> ExecutedTool:
    refs = await large_values.store({"arguments": tool.arguments, "result": tool.result})
    return replace(
        tool,
        arguments={} if "arguments" in refs else tool.arguments,
        result=None if "result" in refs else tool.result,
        refs=refs,
    )
