"""Views of the steps of agents in code."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.parts import StepStatus
from threadkeep.wire.programs import Effect
from threadkeep.wire.view import Time, View


class StepErrorView(View, frozen=True, kw_only=True):
    """An exception of the program, without its traceback, which is in the program's own log."""

    type: str
    message: str


class StepView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a turn. Once the turn's log is trimmed, `effect`, `attempt` and `bytes` are null."""

    step_id: str
    name: Annotated[str, Meta(description="A name in the code; of questions, `ask`.")]
    title: Annotated[str | None, Meta(description="What its user sees. Null for admins.")]
    kind: Literal["step", "model", "tool", "question"]
    status: Annotated[
        StepStatus, Meta(description="`unknown`: it was cut off, and may or may not have taken effect.")
    ]
    effect: Effect | None
    attempt: int | None
    started_at: Time
    duration_ms: int | None
    bytes: Annotated[int | None, Meta(description="The size of its result.")]
    agent: Annotated[str | None, Meta(description="The agent that it ran, if it ran one.")] = None
    parent_id: Annotated[str | None, Meta(description="The step that ran the agent whose step it is.")] = None
    error: Annotated[
        StepErrorView | UnsetType, Meta(description="Why it failed; only for the agent's owner and admins.")
    ] = UNSET
    value: Annotated[Any | UnsetType, Meta(description="Its result, with `values=true`.")] = UNSET
    hidden: Annotated[bool, Meta(description="The code hides it; only with `values=true`.")] = False


class CodeView(View, frozen=True, kw_only=True):
    """Code of an agent."""

    key: str
    version: Annotated[int | None, Meta(description="Null as long as none has begun to run it.")]


class DivergedView(View, frozen=True, kw_only=True):
    """Where the code asked for something else than what is recorded."""

    recorded: Annotated[str, Meta(description="What was recorded next.")]
    asked: Annotated[str, Meta(description="What the code asked for instead.")]


class StepsView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a turn's steps, in order of begin. `nextCursor` continues it; null at the end."""

    items: Sequence[StepView]
    next_cursor: str | None
    code: Annotated[
        CodeView | None,
        Meta(description="The code that began the turn; null for other agents."),
    ]
    diverged: Annotated[
        DivergedView | UnsetType, Meta(description="For `REPLAY_DIVERGED`; only for the agent's owner.")
    ] = UNSET
