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

    message_id: Annotated[Id, Meta(description="The rated answer, without its user's name.")]
    rating: Annotated[Rating, Meta(description="Whether the answer was good (`up`) or not (`down`).")]
    note: Annotated[str, Meta(description="The user's reason; empty without one.")]
    share_text: Annotated[bool, Meta(description="Whether the user lets the owner read the texts.")]
    model: Annotated[str | None, Meta(description="The model that answered, as `gateway/model`.")]
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")]
    answered_at: Annotated[Time, Meta(description="When the agent had answered, in UTC.")]
    rated_at: Annotated[Time, Meta(description="When the user last rated it.")]
    own: Annotated[bool, Meta(description="Whether you rated it yourself.")]
    turn_id: Annotated[Id | UnsetType, Meta(description="The turn, if the user shares it.")] = UNSET
    question: Annotated[str | UnsetType, Meta(description="What the user asked, if the user shares it.")] = (
        UNSET
    )
    answer: Annotated[
        str | UnsetType, Meta(description="What the agent answered, if the user shares it.")
    ] = UNSET
