"""The queue in which messages wait for the turn before them, in order.

A message enters the queue while a turn is active; the store refuses that turn's end until the turn has seen
the message. A message leaves the queue in the commit that begins its turn or adds it to the turn's log.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, IdempotencyKey, KeyId, MessageId, TurnId
from threadkeep.domain.queued import QueuedMessage


@dataclass(frozen=True, slots=True)
class QueueState:
    """What the end of an active turn needs to know about the queue."""

    version: int
    first: QueuedMessage | None


TakeIn = Callable[[Sequence[QueuedMessage]], LogChunk]
"""The chunk of a turn's log for the messages that join it; pure."""


class QueueStore(Protocol):
    """The queue of messages."""

    async def waiting(self, conversation_id: ConversationId) -> Sequence[QueuedMessage]:
        """The queued messages of a conversation, next one first."""
        ...

    async def add(
        self, message: QueuedMessage, active_turn_id: TurnId, key: IdempotencyKey | None = None
    ) -> None:
        """Adds a message at the end, behind the turn that is active.

        StorageConflict if that turn has ended, or the key is already in the queue; RateLimited if it is full.
        """
        ...

    async def edit(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        content: str,
        *,
        key_id: KeyId | None = None,
    ) -> QueuedMessage | None:
        """Edits a queued message; its turn counts for the key of who edited it."""
        ...

    async def remove(self, conversation_id: ConversationId, message_id: MessageId, now: int) -> bool:
        """Removes a queued message, but not its key; returns whether it did."""
        ...

    async def find_by_key(
        self, conversation_id: ConversationId, key: str
    ) -> tuple[QueuedMessage, str] | None:
        """The message sent with an idempotency key, and the request's hash.

        One that joined a running turn or was removed is found without its text; one whose own turn has begun
        is found by that turn.
        """
        ...

    async def state_for(self, turn_id: TurnId, fence: int) -> QueueState | None:
        """The queue behind a turn that runs under this fence; None if it no longer does."""
        ...

    async def take_in(
        self, conversation_id: ConversationId, turn_id: TurnId, fence: int, now: int, to_chunk: TakeIn
    ) -> LogChunk | None:
        """Moves the messages that steer a turn from the queue to its log, all or nothing.

        None if there are none. StorageConflict if another node has taken over the turn.
        """
        ...
