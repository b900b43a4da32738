"""Tools that a turn can use."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.approval import Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.mcp import McpServer, definition_of
from threadkeep.domain.parts import FilePart
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.user import User

MOST_RESULT_BYTES = 8 * 1024 * 1024
"""Maximum size of a tool's result as JSON; a larger one is an error of the call."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server names and describes it. A time-out of 0 means no limit.

    `is_own` marks the tools of our own servers: the model knows them by their bare names. `asks_user` marks
    the tool that the turn's user answers, `is_run_by_client` the tools that the client runs: the model knows
    them by bare names, too, and no server ever receives their calls.
    """

    server: str
    name: str
    description: str
    input_schema: Mapping[str, Any]
    timeout_s: float
    is_own: bool = False
    effect: ToolEffect = ToolEffect.WRITE
    asks_user: bool = False
    is_run_by_client: bool = False
    title: str | None = None
    """What its user is asked about a call, instead of its name."""
    configured: McpServer | None = None
    """Its server as the agent's owner has configured it; our own have no configuration."""

    @property
    def definition(self) -> str:
        """A digest of all that decides what a call does and where it goes: the tool and its server."""
        return definition_of(self.configured, self.name, self.description, self.input_schema)

    @property
    def grant(self) -> "Grant":
        """What a user allows who allows every call of this tool."""
        return self.server, self.name, self.definition


Grant = tuple[str, str, str]
"""A server, its tool, and the tool's definition: every call of it is allowed in a conversation."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The context of a tool call: the user, and the conversation as it was when the turn began.

    A repeated call has the same `call_key`.
    """

    agent: Agent
    user: User
    conversation: Conversation
    call_key: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The tool's progress."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A file or image that a tool returned; the turn keeps it."""

    file_name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool returned. Its failure is data, not an exception.

    `recalled` are images of the conversation that the model receives again.
    `hits` without a `result` are the result: the model receives them with the numbers by which it cites them.
    `restarted`: this is the first result since the server restarted and lost its state.
    `lost`: the tool received the call, or may have, and nobody knows how it ended.
    """

    status: Literal["ok", "error", "timeout", "denied", "unknown"]
    result: Any = None
    error: str | None = None
    chart_data: Any = None
    files: tuple[ReturnedFile, ...] = ()
    recalled: tuple[FilePart, ...] = ()
    query: str = ""
    hits: tuple[RetrievalHit, ...] = ()
    restarted: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The tool's server asks the user to fill in a schema's form or to open an address, and waits.

    The call continues once `decision` is done; None means that there is none. The server itself ends it when
    it no longer waits.
    """

    message: str
    schema: Mapping[str, Any] | None
    url: str | None
    decision: "asyncio.Future[Decision | None]"

    def decide(self, decision: Decision | None) -> None:
        """Continues the call; only the first decision counts."""
        if not self.decision.done():
            self.decision.set_result(decision)


@dataclass(frozen=True, slots=True)
class InputRequest:
    """One request of a server to the user: to fill in a schema's form, or to open an address."""

    key: str
    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The end of a call that needs the user's input: repeating it with them, on any node, continues it."""

    requests: tuple[InputRequest, ...]
    state: str


@dataclass(frozen=True, slots=True)
class GivenInput:
    """The user's decision on each request; None means that there is none."""

    state: str
    decisions: Mapping[str, Decision | None]


Step = Progress | Asked | InputRequired | Returned


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A server that is unavailable; the turn continues with the others."""

    server: str
    message: str


class ToolServer(Protocol):
    """A built-in tool server in this process: `promptx`, `retriever` and the small ones."""

    @property
    def name(self) -> str:
        """The server's name in records and in the agent's list."""
        ...

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """All tools that callers of an agent may have, active or not."""
        ...

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """The tools for this caller; none if the server is inactive."""
        ...

    def call(self, caller: Caller, name: str, arguments: Mapping[str, Any]) -> AsyncGenerator[Step]:
        """Runs a tool: any number of Progress, then exactly one Returned. Closing it cancels the call."""
        ...


class ToolSession(Protocol):
    """The tools of one turn."""

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """The available tools, and the unavailable servers."""
        ...

    def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Step]:
        """Runs a tool: any number of Progress and Asked, then one Returned or InputRequired.

        Closing it ends the call. A repeated call has the same `key`, by which its server recognizes it. One
        that ended in InputRequired continues with the decisions in `given`.
        """
        ...


class ToolProvider(Protocol):
    """The source of tools."""

    def session(self, caller: Caller, used: Collection[str] = ()) -> ToolSession:
        """The tools for one turn; `used` are the names of servers that it used on another node."""
        ...

    def end(self, caller: Caller) -> None:
        """Ends what only this caller's conversation uses, which nobody continues."""
        ...

    async def own_names(self, caller: Caller) -> Collection[str]:
        """The names of our own servers' tools for this caller; those of other servers begin with theirs."""
        ...
