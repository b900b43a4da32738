"""Feedback: what a user thinks of a reply, for the agent's owner."""

from collections.abc import Mapping
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, UserId
from threadkeep.domain.message import Usage
from threadkeep.domain.text import check_storable

MOST_NOTE_CHARACTERS = 4_000


class Rating(Choice):
    """Whether the reply was good."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Feedback:
    """A user's rating of a reply, with a note. The user can change it at any time."""

    message_id: MessageId
    conversation_id: ConversationId
    rating: Rating
    note: str
    share_text: bool
    """Whether the agent's owner may read the turn: everything that the model received, and its reply."""
    created_at: int
    updated_at: int

    def __post_init__(self) -> None:
        if len(self.note) > MOST_NOTE_CHARACTERS:
            raise InvalidRequest(
                f"`note` can have at most {MOST_NOTE_CHARACTERS} characters; yours has {len(self.note)}.",
                param="note",
            )
        check_storable(self.note, "note")


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
