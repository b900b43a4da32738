"""Tools that a turn may use."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.events import RetrievalHit
from threadkeep.domain.user import User
from threadkeep.ports.gateway import ToolSpec


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and the server it belongs to."""

    spec: ToolSpec
    server: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Progress:
    """The tool is under way."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the call ended. A tool's failure is data, not an exception."""

    status: Literal["ok", "error", "timeout", "denied"]
    result: Any = None
    error: str | None = None
    chart_data: Any = None
    artifact_ids: tuple[str, ...] = ()
    query: str = ""
    hits: tuple[RetrievalHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A server that is away; the turn goes on with the others."""

    server: str
    message: str


class ToolSession(Protocol):
    """The tools of one agent for one user, for the length of a turn."""

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """What can be called now, and what is away."""
        ...

    def call(self, tool: Tool, arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Outcome]:
        """Runs a tool: any number of Progress, then exactly one Outcome. Closing it ends the call."""
        ...


class ToolProvider(Protocol):
    """Where tools come from."""

    def session(self, agent: Agent, user: User) -> ToolSession:
        """The tools for one turn."""
        ...
