"""Storage of other engines' runs until they become turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import Conversation, EndedTurn
from threadkeep.domain.events import LogChunk
from threadkeep.domain.execution import ExecutionEvent
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message


@dataclass(frozen=True, slots=True)
class Recorded:
    """A complete turn that ran in another engine, with its log."""

    user_message: Message
    ended: EndedTurn
    chunk: LogChunk


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The status of another engine's run: its turn, once it is complete."""

    run_id: str
    turn_id: TurnId | None


RecordRun = Callable[[Conversation, Sequence[ExecutionEvent]], Recorded | None]
"""Turns a run's events into a turn, or None while it is incomplete; must be pure."""


class ExecutionStore(Protocol):
    """Runs of other engines."""

    async def add(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        events: Sequence[ExecutionEvent],
        record: RecordRun,
    ) -> Sequence[RecordedRun] | None:
        """Stores events, each once; a completed run becomes a turn. None without that conversation."""
        ...
