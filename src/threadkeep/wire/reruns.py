"""Views of reruns."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.wire.messages import CostView, FailureView, UsageView
from threadkeep.wire.view import Id, View

Outcome = Literal["COMPLETED", "NEEDS_TOOL", "FAILED"]


class RunCallView(View, frozen=True, kw_only=True):
    """A tool call of one of two runs."""

    tool_name: Annotated[str, Meta(description="The tool that was called.")]
    server: Annotated[str, Meta(description="The MCP server that the tool belongs to.")]
    arguments: Annotated[Mapping[str, Any], Meta(description="What the tool was called with.")]
    status: Annotated[str, Meta(description="How the call ended in that run.")]
    in_both: Annotated[bool, Meta(description="Whether the other run made the same call, too.")]


class ModelRunView(View, frozen=True, kw_only=True):
    """What a model said to a request, which tools it called, and what that took.

    The duration of the original includes its tools; a rerun calls none.
    """

    model: Annotated[str | None, Meta(description="The model that answered, as `gateway/model`.")]
    text: Annotated[str, Meta(description="What the model wrote in all.")]
    calls: Annotated[Sequence[RunCallView], Meta(description="The tools that the model called, in order.")]
    usage: Annotated[UsageView, Meta(description="The tokens that its model calls used.")]
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")]
    duration_ms: Annotated[int, Meta(description="How long it took, in milliseconds.")]


class RerunView(View, frozen=True, kw_only=True):
    """A turn's request, run again, beside the original.

    `NEEDS_TOOL`: the model made a call that the original has no result for; `error` names it.
    """

    turn_id: Annotated[Id, Meta(description="The turn whose request ran again.")]
    question: Annotated[str, Meta(description="The message that the turn answered.")]
    outcome: Annotated[Outcome, Meta(description="Whether the rerun reached the end of an answer.")]
    rerun: Annotated[ModelRunView, Meta(description="What the new run was like.")]
    original: Annotated[ModelRunView, Meta(description="What the turn itself was like.")]
    error: Annotated[
        FailureView | UnsetType, Meta(description="Why it failed, or which call has no result.")
    ] = UNSET
