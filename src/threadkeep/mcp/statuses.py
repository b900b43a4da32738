"""How servers are where nothing runs them."""

from collections.abc import Mapping

from threadkeep.domain.agent import Agent
from threadkeep.domain.user import User
from threadkeep.ports.mcp import ServerState, ServerStatus


class NoStatuses:
    """Knows of no server that runs."""

    async def of(self, agent: Agent) -> Mapping[str, ServerStatus]:
        """Nothing."""
        return {}

    async def test(self, agent: Agent, user: User, name: str) -> ServerStatus:
        """Tells that nothing can be connected."""
        return ServerStatus(ServerState.FAILED, "This Threadkeep cannot connect to MCP servers.")
