"""A rating as its user sees it."""

from threadkeep.domain.feedback import Feedback, Rating
from threadkeep.wire.view import View


class FeedbackView(View, frozen=True, kw_only=True):
    """Your rating of an answer. With `shareText`, the agent's owner may read everything that the model
    received in that turn, and its answer.
    """

    rating: Rating
    note: str
    share_text: bool


def feedback_view(feedback: Feedback) -> FeedbackView:
    """A rating as its user sees it."""
    return FeedbackView(rating=feedback.rating, note=feedback.note, share_text=feedback.share_text)
