"""Queued messages: each is sent when the turn before it completes, or joins the turn that it steers."""

from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import ConversationId, IdempotencyKey, KeyId, MessageId, TurnId, new_uuid
from threadkeep.domain.parts import FilePart
from threadkeep.domain.turn import BegunWith

MOST_QUEUED = 50


class WhenBusy(Choice):
    """What to do with a message that arrives while the agent replies."""

    REJECT = "reject"
    QUEUE = "queue"
    STEER = "steer"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A queued message. While its conversation has no active turn, it is held until its user sends."""

    id: MessageId
    conversation_id: ConversationId
    content: str
    created_at: int
    steers_turn_id: TurnId | None = None
    """The turn that accepts it before its next model call, unless the turn ends first."""
    files: tuple[FilePart, ...] = ()
    model: str | None = None
    """The model that its sender chose."""
    key_id: KeyId | None = None
    """The API key that queued it; None if its user did so themselves."""
    begun_with: BegunWith | None = None
    """What its turn will have been begun with."""

    @staticmethod
    def of(
        conversation_id: ConversationId,
        content: str,
        now: int,
        *,
        steers_turn_id: TurnId | None = None,
        files: tuple[FilePart, ...] = (),
        model: str | None = None,
        key_id: KeyId | None = None,
        begun_with: BegunWith | None = None,
    ) -> "QueuedMessage":
        """A new queued message."""
        return QueuedMessage(
            id=MessageId(new_uuid()),
            conversation_id=conversation_id,
            content=content,
            created_at=now,
            steers_turn_id=steers_turn_id,
            files=files,
            model=model,
            key_id=key_id,
            begun_with=begun_with,
        )


@dataclass(frozen=True, slots=True)
class QueueChange:
    """How the start of a turn changes the queue."""

    taken: QueuedMessage
    """The message that the turn replies to."""
    added: QueuedMessage | None = None
    """The message that released a held queue."""
    added_key: IdempotencyKey | None = None


def check_room(waiting: int) -> None:
    """Refuses another message if too many are queued."""
    if waiting >= MOST_QUEUED:
        raise RateLimited(
            f"{waiting} messages are already queued in this conversation, the most allowed. Remove one, or "
            "wait until one is sent.",
            details={"limit": "queuedMessages", "most": MOST_QUEUED},
        )
