"""Tools that a turn may use."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.user import User

MOST_RESULT_BYTES = 8 * 1024 * 1024
"""Of a tool's result, as JSON; a larger one is an error of the call."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server names and describes it. A time-out of 0 means no limit.

    `is_own` marks the tools of our own servers: the model knows them by their bare names.
    """

    server: str
    name: str
    description: str
    input_schema: Mapping[str, Any]
    timeout_s: float
    is_own: bool = False
    effect: ToolEffect = ToolEffect.WRITE
    asks_user: bool = False
    """Whether the turn's user answers it, instead of a server."""


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a tool is called, and where: in a conversation as it was when the turn began."""

    agent: Agent
    user: User
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Progress:
    """The tool is under way."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ProducedFile:
    """A file or image that a tool gave; it becomes an artifact of the turn."""

    file_name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the call ended. A tool's failure is data, not an exception.

    `hits` without a `result` are the result: the model gets them with the numbers by which it cites them.
    """

    status: Literal["ok", "error", "timeout", "denied", "unknown"]
    result: Any = None
    error: str | None = None
    chart_data: Any = None
    files: tuple[ProducedFile, ...] = ()
    query: str = ""
    hits: tuple[RetrievalHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A server that is away; the turn goes on with the others."""

    server: str
    message: str


class ToolServer(Protocol):
    """One of our own servers of tools, in this process: `promptx`, `retriever` and the small ones."""

    @property
    def name(self) -> str:
        """The server's name in records and in the agent's list."""
        ...

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """What this caller may use; none where the server is inactive."""
        ...

    def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Outcome]:
        """Runs a tool: any number of Progress, then exactly one Outcome. Closing it ends the call."""
        ...


class ToolSession(Protocol):
    """The tools of one turn."""

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """What can be called now, and what is away."""
        ...

    def call(self, tool: Tool, arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Outcome]:
        """Runs a tool: any number of Progress, then exactly one Outcome. Closing it ends the call."""
        ...


class ToolProvider(Protocol):
    """Where tools come from."""

    def session(self, caller: Caller) -> ToolSession:
        """The tools for one turn."""
        ...
