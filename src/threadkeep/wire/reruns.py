"""Views of reruns."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.wire.messages import CostView, FailureView, UsageView
from threadkeep.wire.view import Id, View

Outcome = Literal["COMPLETED", "NEEDS_TOOL", "FAILED"]


class RunCallView(View, frozen=True, kw_only=True):
    """A tool call of one of two runs."""

    tool_name: str
    server: str
    arguments: Mapping[str, Any]
    status: str
    in_both: Annotated[bool, Meta(description="Whether the other run made the same call, too.")]


class ModelRunView(View, frozen=True, kw_only=True):
    """What a model said to a request, which tools it called, and what that took.

    The duration of the original includes its tools; a rerun calls none.
    """

    model: str | None
    text: str
    calls: Sequence[RunCallView]
    usage: UsageView
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")]
    duration_ms: int


class RerunView(View, frozen=True, kw_only=True):
    """A turn's request, run again, beside the original.

    `NEEDS_TOOL`: the model made a call that the original has no result for; `error` names it.
    """

    turn_id: Id
    question: str
    outcome: Outcome
    rerun: ModelRunView
    original: ModelRunView
    error: FailureView | UnsetType = UNSET
