"""Where runs of other engines are kept until they are turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import Conversation, EndedTurn
from threadkeep.domain.execution import ExecutionEvent
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message
from threadkeep.ports.turn_log import LogChunk


@dataclass(frozen=True, slots=True)
class Recorded:
    """A turn that ran elsewhere, whole, and its log as it is kept."""

    user_message: Message
    ended: EndedTurn
    chunk: LogChunk


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """How a run of another engine stands: its turn, once it is complete."""

    run_id: str
    turn_id: TurnId | None


RecordRun = Callable[[Conversation, Sequence[ExecutionEvent]], Recorded | None]
"""Makes a turn of a run's events, or nothing while it is not complete; must be pure."""


class ExecutionStore(Protocol):
    """Runs of other engines."""

    async def add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Sequence[RecordedRun] | None:
        """Keeps events, each once; a run that they complete becomes a turn. None without the conversation."""
        ...
