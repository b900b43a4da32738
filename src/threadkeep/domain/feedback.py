"""Feedback: what a user thinks of a reply, for the agent's owner."""

from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import ConversationId, MessageId
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
