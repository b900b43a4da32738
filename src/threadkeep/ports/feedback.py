"""Storage of users' feedback."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.feedback import Feedback, FeedbackFilter, RatedReply
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, UserId


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """A turn that its user shares with the owner of the agent."""

    agent_id: AgentId
    user_id: UserId


class FeedbackStore(Protocol):
    """Feedback, at most one for each reply."""

    async def put(self, feedback: Feedback) -> Feedback | None:
        """Stores feedback, or replaces what there is for its reply; None if the reply is gone.

        The time of the first feedback stays.
        """
        ...

    async def remove(self, message_id: MessageId) -> None:
        """Removes the feedback on a reply, if there is any."""
        ...

    async def conversation_of(self, user_id: UserId, message_id: MessageId) -> ConversationId | None:
        """The conversation of a user, not deleted, that a message belongs to."""
        ...

    async def of_conversation(self, conversation_id: ConversationId) -> Sequence[Feedback]:
        """All feedback in a conversation, by message."""
        ...

    async def page(
        self,
        which: FeedbackFilter,
        *,
        reader: UserId,
        reads_shared: bool,
        before: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[RatedReply]:
        """Feedback by `(updated_at, message_id)`, newest first, after a position.

        It has the texts of the reader's own turns and, if `reads_shared`, of those that users share.
        Feedback in deleted conversations is left out.
        """
        ...

    async def shared_turn(self, turn_id: TurnId) -> SharedTurn | None:
        """A turn that its user shares with the agent's owner, in a conversation that is not deleted."""
        ...
