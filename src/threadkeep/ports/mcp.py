"""The MCP servers of agents: their list, permissions and status."""

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.agent import Agent
from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.mcp import McpServer, ServerSource
from threadkeep.domain.user import User
from threadkeep.ports.tools import Tool


class ServerState(Choice):
    """A server's state. `idle` starts when needed, `inactive` has nothing to offer this agent."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    FAILED = "failed"
    INACTIVE = "inactive"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server's current status. `error` and `stderr` contain no secrets; `tools` is None while unknown."""

    state: ServerState
    error: str | None = None
    tools: tuple[Tool, ...] | None = None
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class ListedServer:
    """An entry of an agent's merged list; `server` is None for built-in ones, which have no settings."""

    name: str
    source: ServerSource
    server: McpServer | None = None


@dataclass(frozen=True, slots=True)
class ServerReport:
    """An agent's server and its status. `changed`: its tools have changed since the last save."""

    listed: ListedServer
    status: ServerStatus
    changed: bool


class ServerCatalog(Protocol):
    """An agent's servers, and which of them may be saved and run."""

    def merged(self, agent: Agent) -> Sequence[ListedServer]:
        """The system's, the built-in and the owner's own servers, in this order."""
        ...

    def check(self, user: User, servers: Mapping[str, McpServer], kept: Mapping[str, McpServer]) -> None:
        """Refuses servers that this user may not save; unchanged ones are accepted.

        McpConfigInvalid, McpCommandNotAllowed, McpNameReserved or Forbidden.
        """
        ...

    def problem(self, name: str, server: McpServer) -> str | None:
        """Why a saved server may not run: the operator may have tightened the rules since."""
        ...


class ServerStatuses(Protocol):
    """The status of agents' servers; the pool knows it."""

    def states(self) -> Sequence[ServerState]:
        """The status of all servers on this node."""
        ...

    def known(self, agent: Agent) -> Sequence[Tool]:
        """The tools that the agent's turns may use, as far as this node knows; effects are as declared."""
        ...

    async def of(self, agent: Agent) -> Mapping[str, ServerStatus]:
        """The status of the agent's servers on this node, by name; may omit those never used."""
        ...

    async def test(self, agent: Agent, user: User, name: str) -> ServerStatus:
        """Connects to one of the agent's servers, ignoring its back-off, and lists its tools.

        An unreachable server is a status, not an exception.
        """
        ...


class PersonalServers(Protocol):
    """Servers and data of single users on this node."""

    async def forget(self, user_id: UserId) -> None:
        """Ends a user's servers and deletes their data."""
        ...

    async def keep_only(self, users: AsyncIterable[UserId]) -> None:
        """Does the same for everyone except these users."""
        ...


class SeenTools(Protocol):
    """The tools a server had when the agent was last saved, and those it has now; shared by all nodes."""

    async def record(self, agent_id: AgentId, server: str, fingerprint: str) -> None:
        """Stores the tools of a server that has just connected; the first ones are accepted."""
        ...

    async def changed(self, agent_id: AgentId) -> frozenset[str]:
        """The servers whose tools have changed since the last save."""
        ...
