"""Views of the steps of agents in code."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.parts import StepStatus
from threadkeep.wire.programs import Effect
from threadkeep.wire.view import Time, View


class StepErrorView(View, frozen=True, kw_only=True):
    """An exception of the program, without its traceback, which is in the program's own log."""

    type: Annotated[str, Meta(description="The exception's class, such as `ValueError`.")]
    message: Annotated[str, Meta(description="The exception's text, as the code raised it.")]


class StepView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A step of a turn. Once the turn's log is trimmed, `effect`, `attempt` and `bytes` are null."""

    step_id: Annotated[str, Meta(description="The step's id within its turn.")]
    name: Annotated[str, Meta(description="A name in the code; of questions, `ask`.")]
    title: Annotated[str | None, Meta(description="What its user sees. Null for admins.")]
    kind: Annotated[
        Literal["step", "model", "tool", "question", "agent"],
        Meta(description="What the step does: runs code or another agent, calls a model or tool, or asks."),
    ]
    status: Annotated[
        StepStatus, Meta(description="`unknown`: it was cut off, and may or may not have taken effect.")
    ]
    effect: Annotated[
        Effect | None, Meta(description="Whether repeating it is harmless: `read`, `idempotent` or `write`.")
    ]
    attempt: Annotated[int | None, Meta(description="How often it was begun, counted from 1.")]
    started_at: Annotated[Time, Meta(description="When the step began, in UTC.")]
    duration_ms: Annotated[
        int | None, Meta(description="How long it took, in milliseconds; null while it runs.")
    ]
    bytes: Annotated[int | None, Meta(description="The size of its result.")]
    agent: Annotated[str | None, Meta(description="The agent that it ran, if it ran one.")] = None
    parent_id: Annotated[str | None, Meta(description="The step that ran the agent whose step it is.")] = None
    error: Annotated[
        StepErrorView | UnsetType, Meta(description="Why it failed; only for the agent's owner and admins.")
    ] = UNSET
    value: Annotated[
        Any | UnsetType, Meta(description="What the step returned; only with `values=true`.")
    ] = UNSET
    hidden: Annotated[bool, Meta(description="The code hides it; only with `values=true`.")] = False


class CodeView(View, frozen=True, kw_only=True):
    """Code of an agent."""

    key: Annotated[str, Meta(description="The program's name, as its code registers it.")]
    version: Annotated[int | None, Meta(description="Null as long as none has begun to run it.")]


class DivergedView(View, frozen=True, kw_only=True):
    """Where the code asked for something else than what is recorded."""

    recorded: Annotated[str, Meta(description="What the turn's log has at this place.")]
    asked: Annotated[str, Meta(description="What the code asked for instead.")]


class StepsView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a turn's steps, in order of begin. `nextCursor` continues it; null at the end."""

    items: Annotated[Sequence[StepView], Meta(description="The steps, in the order in which they began.")]
    next_cursor: Annotated[
        str | None, Meta(description="Where the list continues, for `cursor`; null at the end.")
    ]
    code: Annotated[
        CodeView | None,
        Meta(description="The code that began the turn; null for other agents."),
    ]
    diverged: Annotated[
        DivergedView | UnsetType, Meta(description="For `REPLAY_DIVERGED`; only for the agent's owner.")
    ] = UNSET
