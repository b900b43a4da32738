"""Storage of users' feedback."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.feedback import Feedback, Rating
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, UserId
from threadkeep.domain.message import Usage

FeedbackByMessage = Mapping[MessageId, Feedback]


@dataclass(frozen=True, slots=True)
class FeedbackFilter:
    """Which feedback: on an agent's replies, of a user; `since` is inclusive, `until` exclusive."""

    agent_id: AgentId | None = None
    user_id: UserId | None = None
    rating: Rating | None = None
    model: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedReply:
    """Feedback with the reply that it is about."""

    feedback: Feedback
    agent_id: AgentId
    user_id: UserId
    """Who rated it; not for the agent's owner."""
    turn_id: TurnId | None
    model: str | None
    usage: Usage | None
    replied_at: int
    question: str | None
    """None if the reader may not read the turn."""
    reply: str | None


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
