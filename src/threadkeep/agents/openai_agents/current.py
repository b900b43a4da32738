"""What one run of an SDK's agent shares with its models, tools and guardrails."""

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from threadkeep.agents.turn import Turn, current_turn, in_step, in_turn
from threadkeep.wire.programs import Effect, ServerTool

ToolEffect = Effect | Literal["scope"]
"""What a repetition of a tool would do; the steps inside of a `scope` are recorded instead of itself."""

MOST_NAME_CHARACTERS = 100

_numbers = itertools.count()


@dataclass(slots=True)
class Running:
    """A run of an agent inside a turn, with all agents that it hands over to."""

    effects: Mapping[str, ToolEffect]
    """Of the tools, by their names."""
    trusts_annotations: bool = False
    """Whether what MCP servers say of their tools counts."""
    is_nested: bool = False
    """Whether another agent called it as a tool: its text is no part of the reply then."""
    offered: Sequence[ServerTool] = ()
    """What the server and the client can run for it."""
    agent: str = ""
    """Who speaks, by its name."""
    approved: set[str] = field(default_factory=set[str])
    """The calls that the SDK wants approved: the server asks for it when they are claimed."""
    said: str = ""
    """What the last model call has shown."""
    replies: int = 0
    """How many replies of models were recorded."""
    number: int = field(default_factory=_numbers.__next__)
    """Tells runs apart; those of agents that are tools have that of the run that called them."""
    at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    """What is done when it has ended."""


running: ContextVar[Running | None] = ContextVar("running", default=None)


def recording() -> tuple[Turn, Running] | None:
    """The turn and the run, where calls are to be recorded: not outside of a turn, nor inside a step."""
    now = running.get()
    if now is None or not in_turn() or in_step():
        return None
    return current_turn(), now


def step_name(name: str) -> str:
    """A name of the user's as that of a step."""
    shown = "".join(it if it.isprintable() and it != "/" else " " for it in name)
    return " ".join(shown.split())[:MOST_NAME_CHARACTERS] or "Agent"
