"""Views of feedback."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.feedback import Feedback, Rating
from threadkeep.wire.view import Id, Time, View


class FeedbackView(View, frozen=True, kw_only=True):
    """Your rating of an answer. With `shareText`, the agent's owner may read everything that the model
    received in that turn, and its answer.
    """

    rating: Rating
    note: str
    share_text: bool


class RatedAnswerView(View, frozen=True, kw_only=True):
    """A user's rating of an answer. `turnId` and the texts are there if the user shares the turn with the
    agent's owner, or if it is your own.
    """

    message_id: Id
    rating: Rating
    note: str
    share_text: bool
    model: str | None
    answered_at: Time
    rated_at: Time
    own: Annotated[bool, Meta(description="Whether you rated it yourself.")]
    turn_id: Id | UnsetType = UNSET
    question: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET


def feedback_view(feedback: Feedback) -> FeedbackView:
    """A rating as its user sees it."""
    return FeedbackView(rating=feedback.rating, note=feedback.note, share_text=feedback.share_text)
