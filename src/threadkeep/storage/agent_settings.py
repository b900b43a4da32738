"""An agent's settings, and where another server runs it: JSON, with the secrets encrypted."""

from typing import Any

import msgspec

from threadkeep.domain.agent import Agent, AgentSettings
from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.ids import FIRST_UUID, AgentId
from threadkeep.domain.mcp import McpServer, RemoteServer, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.secrets import REMEMBER_KEY, SealedSecret, SecretBox

_PAGE = 100
# A first choice by text: only servers have secrets.
_WITH_SERVERS = Statement(
    """SELECT id FROM tk_agents
    WHERE id > :after AND (settings LIKE '%"mcp_servers":{"%' OR remote IS NOT NULL)
    ORDER BY id LIMIT :limit"""
)
# Held until the settings are written back, so that no change by the owner is lost.
_LOCK = Statement("SELECT settings, remote FROM tk_agents WHERE id = :id", locks="FOR UPDATE")
_KEEP = Statement("UPDATE tk_agents SET settings = :settings, remote = :remote WHERE id = :id")

# An owner who wants it again begins again.
_REMEMBER = Statement(
    """UPDATE tk_agents SET
        delete_since = CASE WHEN :days = 0 THEN NULL
            WHEN delete_after_days = 0 THEN :now ELSE delete_since END,
        delete_shortened_at = CASE WHEN :days = 0 OR delete_after_days = 0 THEN NULL
            WHEN :days < delete_after_days THEN :now ELSE delete_shortened_at END,
        delete_after_days = :days
    WHERE id = :id AND delete_after_days <> :days"""
)


class SettingsColumn:
    """Writes what has secrets into its columns, and reads it from them."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._encoder = msgspec.json.Encoder(enc_hook=self._sealed)
        self._decoder = msgspec.json.Decoder(AgentSettings, dec_hook=self._built)
        self._remote_decoder = msgspec.json.Decoder(RemoteAgent, dec_hook=self._built)

    def encode(self, settings: AgentSettings) -> str:
        """Settings as stored."""
        return self._encoder.encode(settings).decode()

    def decode(self, text: str) -> AgentSettings:
        """Stored settings; their secrets stay encrypted until used."""
        return self._decoder.decode(text)

    def encode_remote(self, remote: RemoteAgent | None) -> str | None:
        """Where another server runs an agent, as stored."""
        return None if remote is None else self._encoder.encode(remote).decode()

    def decode_remote(self, text: str | None) -> RemoteAgent | None:
        """Where another server runs an agent."""
        return None if text is None else self._remote_decoder.decode(text)

    def remember_key(self, agent: Agent) -> Plan[None]:
        """Records which key is needed from now on, if the agent has a secret."""
        servers = agent.settings.mcp_servers.values()
        if any(server.secrets for server in servers) or (agent.remote and agent.remote.headers):
            yield REMEMBER_KEY(value=self._box.sealing_key)

    def _sealed(self, value: object) -> str:
        if isinstance(value, Secret):
            return self._box.seal(value)
        raise NotImplementedError(f"{type(value).__name__} is not kept")

    def _built(self, wanted: type, value: Any) -> object:
        if wanted is Secret:
            return self._box.kept(value)
        if wanted is McpServer:
            kind = StdioServer if "command" in value else RemoteServer
            return msgspec.convert(value, kind, dec_hook=self._built)
        raise NotImplementedError(f"{wanted.__name__} is not kept")


def remember_rule(agent_id: AgentId, days: int, now: int) -> Plan[None]:
    """Notes an agent's rule and since when it counts, in the transaction that changes the agent."""
    yield _REMEMBER(id=agent_id, days=days, now=now)


async def reseal_settings(database: Database, box: SecretBox) -> int:
    """Re-encrypts the secrets in agents' settings with the first key; returns how many are unreadable."""
    column = SettingsColumn(box)
    after, unreadable = FIRST_UUID, 0
    while found := await database.fetch(_WITH_SERVERS(after=after, limit=_PAGE)):
        for (id_,) in found:
            unreadable += await database.write(lambda id_=id_: _reseal(column, id_))
        after = found[-1][0]
    return unreadable


def _reseal(column: SettingsColumn, id_: str) -> Plan[int]:
    """Re-encrypts one agent's settings with the first key; returns how many secrets are unreadable."""
    rows = yield _LOCK(id=id_)
    if not rows:
        return 0
    settings, remote = column.decode(rows[0][0]), column.decode_remote(rows[0][1])
    yield _KEEP(id=id_, settings=column.encode(settings), remote=column.encode_remote(remote))
    kept = [secret for server in settings.mcp_servers.values() for secret in server.secrets.values()]
    kept += remote.headers.values() if remote is not None else ()
    return sum(isinstance(secret, SealedSecret) and not secret.is_readable for secret in kept)
