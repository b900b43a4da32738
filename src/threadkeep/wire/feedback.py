"""A rating as its user sees it."""

from typing import Annotated

from msgspec import Meta

from threadkeep.domain.feedback import Feedback, Rating
from threadkeep.wire.view import View


class FeedbackView(View, frozen=True, kw_only=True):
    """Your rating of an answer. With `shareText`, the agent's owner may read everything that the model
    received in that turn, and its answer.
    """

    rating: Annotated[Rating, Meta(description="Whether the answer was good (`up`) or not (`down`).")]
    note: Annotated[str, Meta(description="Why you rated it so; empty without a reason.")]
    share_text: Annotated[bool, Meta(description="Whether the agent's owner may read the turn's texts.")]


def feedback_view(feedback: Feedback) -> FeedbackView:
    """A rating as its user sees it."""
    return FeedbackView(rating=feedback.rating, note=feedback.note, share_text=feedback.share_text)
