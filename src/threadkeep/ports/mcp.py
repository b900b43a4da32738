"""The MCP servers of agents: their list, permissions and status."""

from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId
from threadkeep.domain.mcp import McpServer, ServerSource
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


class SeenTools(Protocol):
    """The tools a server had when the agent was last saved, and those it has now; shared by all nodes."""

    async def record(self, agent_id: AgentId, server: str, fingerprint: str) -> None:
        """Stores the tools of a server that has just connected; the first ones are accepted."""
        ...

    async def changed(self, agent_id: AgentId) -> frozenset[str]:
        """The servers whose tools have changed since the last save."""
        ...
