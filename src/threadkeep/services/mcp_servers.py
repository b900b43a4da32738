"""An agent's MCP servers as its owner sees them, with their status."""

from collections.abc import Sequence

from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import McpServerNotFound
from threadkeep.domain.mcp import RETRIEVER, ServerSource
from threadkeep.domain.user import User
from threadkeep.mcp.agent_tools import AgentTools
from threadkeep.mcp.catalog import Catalog
from threadkeep.ports.mcp import ServerReport, ServerState, ServerStatus
from threadkeep.ports.tools import Tool
from threadkeep.services.agents import Agents
from threadkeep.storage.store import Store

# The state of a server about which nothing is known yet.
_AT_FIRST = {
    ServerSource.SYSTEM: ServerStatus(ServerState.READY),
    ServerSource.BUILTIN: ServerStatus(ServerState.INACTIVE),
    ServerSource.USER: ServerStatus(ServerState.IDLE),
}
_DISABLED = ServerStatus(ServerState.DISABLED)


class McpServers:
    """The use cases of MCP servers."""

    def __init__(self, store: Store, agents: Agents, catalog: Catalog, statuses: AgentTools) -> None:
        self._store = store
        self._agents = agents
        self._catalog = catalog
        self._statuses = statuses

    def states(self) -> Sequence[ServerState]:
        """The status of all servers on this node."""
        return self._statuses.states()

    async def report(self, agent: Agent) -> Sequence[ServerReport]:
        """All servers of an agent; for users who can change it."""
        known = await self._statuses.of(agent)
        changed = await self._store.seen_tools.changed(agent.id)
        reports: list[ServerReport] = []
        for listed in self._catalog.merged(agent):
            status = known.get(listed.name, _AT_FIRST[listed.source])
            if listed.name == RETRIEVER and await self._store.documents.has_ready(agent.id):
                status = ServerStatus(ServerState.READY)
            if listed.server is not None and listed.server.disabled:
                status = _DISABLED
            reports.append(ServerReport(listed, status, listed.name in changed))
        return reports

    async def tools(self, user: User, agent_id: str) -> Sequence[Tool]:
        """The tools of an agent, as far as they are known; for users who can change it."""
        return self._statuses.known(await self._agents.get_open(user, agent_id))

    async def test(self, user: User, agent_id: str, name: str) -> ServerReport:
        """Connects to a server and lists its tools; for users who can change the agent."""
        agent = await self._agents.get_open(user, agent_id)
        listed = next((it for it in self._catalog.merged(agent) if it.name == name), None)
        if listed is None:
            raise McpServerNotFound
        status = await self._statuses.test(agent, user, name)
        return ServerReport(listed, status, name in await self._store.seen_tools.changed(agent.id))
