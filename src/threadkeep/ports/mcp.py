"""The MCP servers of agents: which there are, who may save them, and how they are."""

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
    """How a server is. `idle` starts when it is needed, `inactive` has nothing to offer this agent."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    FAILED = "failed"
    INACTIVE = "inactive"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is now. `error` and `stderr` hold no secret; `tools` is None while they are unknown."""

    state: ServerState
    error: str | None = None
    tools: tuple[Tool, ...] | None = None
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class ListedServer:
    """One line of an agent's merged list; `server` is None for our own, which have no configuration."""

    name: str
    source: ServerSource
    server: McpServer | None = None


@dataclass(frozen=True, slots=True)
class ServerReport:
    """One server of an agent, and how it is. `changed`: its tools are not those of the last save."""

    listed: ListedServer
    status: ServerStatus
    changed: bool


class ServerCatalog(Protocol):
    """Which servers an agent has, and which may be saved and run."""

    def merged(self, agent: Agent) -> Sequence[ListedServer]:
        """The system's, the built-in and the owner's own servers, in this order."""
        ...

    def check(self, user: User, servers: Mapping[str, McpServer], kept: Mapping[str, McpServer]) -> None:
        """Refuses what this user may not save; what is kept as it was has been decided before.

        McpConfigInvalid, McpCommandNotAllowed, McpNameReserved or Forbidden.
        """
        ...

    def problem(self, server: McpServer) -> str | None:
        """Why a saved server may not run (any more): the operator may have become stricter since."""
        ...


class ServerStatuses(Protocol):
    """How the servers of agents are; the pool knows."""

    def states(self) -> Sequence[ServerState]:
        """How all servers of this node are, whosever they are."""
        ...

    async def of(self, agent: Agent) -> Mapping[str, ServerStatus]:
        """How the agent's servers are on this node, by name; those never used may be left out."""
        ...

    async def test(self, agent: Agent, user: User, name: str) -> ServerStatus:
        """Connects one of the agent's servers, whatever its back-off, and lists its tools.

        A server that cannot be reached is a status, not an exception.
        """
        ...


class PersonalServers(Protocol):
    """What servers run, and keep, for single users on this node."""

    async def forget(self, user_id: UserId) -> None:
        """Ends what runs for a user, and removes what it has kept."""
        ...

    async def keep_only(self, users: AsyncIterable[UserId]) -> None:
        """Does the same for everyone but these users."""
        ...


class SeenTools(Protocol):
    """Which tools a server had when the agent was last saved, and which it has now; for all nodes."""

    async def record(self, agent_id: AgentId, server: str, fingerprint: str) -> None:
        """Remembers the tools of a server that has just been connected; the first ones are accepted."""
        ...

    async def changed(self, agent_id: AgentId) -> frozenset[str]:
        """The servers whose tools are not those of the last save any more."""
        ...
