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
    """A filter for an agent's feedback; `since` is inclusive, `until` exclusive."""

    rating: Rating | None = None
    model: str | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedReply:
    """Feedback with the reply that it is about."""

    feedback: Feedback
    user_id: UserId
    """Who rated it; not for the agent's owner."""
    turn_id: TurnId | None
    model: str | None
    usage: Usage | None
    replied_at: int
    question: str | None
    """None if the reader may not read the turn."""
    reply: str | None


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
        agent_id: AgentId,
        which: FeedbackFilter,
        *,
        reader: UserId,
        reads_shared: bool,
        before: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[RatedReply]:
        """An agent's feedback by `(updated_at, message_id)`, newest first, after a position.

        It has the texts of the reader's own turns and, if `reads_shared`, of those that users share.
        Feedback in deleted conversations is left out.
        """
        ...

    async def is_shared(self, turn_id: TurnId, agent_id: AgentId) -> bool:
        """Whether a turn's user lets the agent's owner read it, in a conversation that is not deleted."""
        ...
