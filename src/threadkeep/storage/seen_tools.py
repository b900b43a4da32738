"""Which tools the agents' servers have, and which they had when the agent was last saved."""

from threadkeep.domain.agent import Agent
from threadkeep.domain.ids import AgentId
from threadkeep.storage.database.connector import Database, Plan, Statement

# Read first, since there is hardly ever anything to record.
_SEEN = Statement("SELECT seen FROM tk_seen_tools WHERE agent_id = :agent_id AND server = :server")
# If the agent has been deleted, there is nothing to record.
_RECORD = Statement(
    """INSERT INTO tk_seen_tools (agent_id, server, accepted, seen)
    SELECT id, :server, :fingerprint, :fingerprint FROM tk_agents WHERE id = :agent_id
    ON CONFLICT (agent_id, server) DO UPDATE SET seen = excluded.seen
        WHERE tk_seen_tools.seen <> excluded.seen"""
)
# Servers whose tools have changed since the agent was saved.
_CHANGED = Statement("SELECT server FROM tk_seen_tools WHERE agent_id = :agent_id AND seen <> accepted")
# Saving the agent accepts the tools that its servers have shown so far.
_ACCEPT = Statement(
    "UPDATE tk_seen_tools SET accepted = seen WHERE agent_id = :agent_id AND seen <> accepted"
)
# A server with other settings starts over: the first tools that it shows are accepted.
_FORGET = Statement("DELETE FROM tk_seen_tools WHERE agent_id = :agent_id AND server = :server")


class SqlSeenTools:
    """The tools seen so far, in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, agent_id: AgentId, server: str, fingerprint: str) -> None:
        """Records the tools of a newly connected server; the first ones are accepted."""
        # Every turn calls this, and hardly ever with anything new.
        rows = await self._database.fetch(_SEEN(agent_id=agent_id, server=server))
        if rows and rows[0][0] == fingerprint:
            return
        await self._database.execute(_RECORD(agent_id=agent_id, server=server, fingerprint=fingerprint))

    async def changed(self, agent_id: AgentId) -> frozenset[str]:
        """The servers whose tools have changed since the last save."""
        rows = await self._database.fetch(_CHANGED(agent_id=agent_id))
        return frozenset(server for (server,) in rows)


def accept_tools(before: Agent, after: Agent) -> Plan[None]:
    """Saving an agent accepts its servers' current tools; a changed server starts over."""
    servers = after.settings.mcp_servers
    for name, server in before.settings.mcp_servers.items():
        if servers.get(name) != server:
            yield _FORGET(agent_id=before.id, server=name)
    yield _ACCEPT(agent_id=before.id)
