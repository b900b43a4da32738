"""Ratings as the agent's owner sees them."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.feedback import Rating
from threadkeep.wire.messages import CostView
from threadkeep.wire.view import Id, Time, View


class RatedAnswerView(View, frozen=True, kw_only=True):
    """A user's rating of an answer. `turnId` and the texts are there if the user shares the turn with the
    agent's owner, or if it is your own.
    """

    message_id: Id
    rating: Rating
    note: str
    share_text: bool
    model: str | None
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")]
    answered_at: Time
    rated_at: Time
    own: Annotated[bool, Meta(description="Whether you rated it yourself.")]
    turn_id: Id | UnsetType = UNSET
    question: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
