"""Storage of turns: their start and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import BegunTurn, Conversation, EndedTurn
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, IdempotencyKey, TurnId, UserId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import RunningTurn, Turn, TurnStatus
from threadkeep.ports.turn_log import Lease


@dataclass(frozen=True, slots=True)
class QueueChange:
    """How the start of a turn changes the queue."""

    taken: QueuedMessage
    """The message that the turn replies to."""
    added: QueuedMessage | None = None
    """The message that released a held queue."""
    added_key: IdempotencyKey | None = None


@dataclass(frozen=True, slots=True)
class WaitingEnd:
    """The end of a waiting turn whose user continues without deciding."""

    ended: EndedTurn
    chunk: LogChunk
    fence: int


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that begins, and what else its start changes in the same commit."""

    begun: BegunTurn
    key: IdempotencyKey | None = None
    """The key of the request that began it."""
    queue: QueueChange | None = None
    waiting_end: WaitingEnd | None = None
    """The end of the turn that waited for its user until now."""
    outside_id: str | None = None
    """The id that the client gave to the user's message."""
    new_conversation: Conversation | None = None
    """Its conversation before it began, if that is stored with its first turn."""
    conversation_outside_id: str | None = None
    """The id that the client gives to the conversation, if it doesn't have it yet."""


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The turn of a queued message, which begins in the commit that ends the previous turn."""

    new: NewTurn
    lease: Lease
    opening: LogChunk


class TurnStore(Protocol):
    """Turns: their start and end."""

    async def begin(self, new: NewTurn, lease: Lease, opening: LogChunk) -> None:
        """Stores a new turn with the opening of its log and all that its start changes; all or nothing.

        StorageConflict if the conversation or the queued message has changed since it was read, or if a new
        conversation's outside id, or its place as the main one, was taken meanwhile.
        """
        ...

    async def end(
        self,
        ended: EndedTurn,
        chunk: LogChunk,
        fence: int,
        *,
        receipt: TurnReceipt | None = None,
        queue_version: int = 0,
        next_turn: NextTurn | None = None,
    ) -> None:
        """Stores a turn's end: the rest of its log, the reply, the conversation free or in its next turn;
        and its receipt, if that isn't stored yet.

        All or nothing. StorageConflict if the turn has already ended, another node has taken it over, or the
        queue behind a completed turn has another version (0: nothing was queued).
        """
        ...

    async def get(self, user_id: UserId, turn_id: TurnId) -> Turn | None:
        """One turn in a conversation of the user that is not deleted."""
        ...

    async def status(self, turn_id: TurnId) -> TurnStatus | None:
        """The status of any user's turn; None if it doesn't exist."""
        ...

    async def running(self, *, after: str | None, offset: int, limit: int) -> Sequence[RunningTurn]:
        """The running turns on all nodes, oldest first; those after an id."""
        ...

    async def get_active(self, turn_id: TurnId) -> RunningTurn | None:
        """Any user's turn, if it runs or waits for its user."""
        ...

    async def begun_after(
        self, conversation_id: ConversationId, seq: int, *, limit: int
    ) -> Sequence[tuple[Turn, int]]:
        """Live turns whose replies have numbers above `seq`, in that order, each with the number."""
        ...

    async def find_by_key(self, conversation_id: ConversationId, key: str) -> tuple[Turn, str] | None:
        """The turn started with an idempotency key, however long ago, and the request's hash."""
        ...
