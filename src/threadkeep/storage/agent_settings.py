"""An agent's settings column: JSON, with the secrets of its servers encrypted."""

from typing import Any

import msgspec

from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.ids import FIRST_UUID, AgentId
from threadkeep.domain.mcp import McpServer, RemoteServer, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.secrets import REMEMBER_KEY, SealedSecret, SecretBox

_PAGE = 100
# A first choice by text: only servers have secrets.
_WITH_SERVERS = Statement(
    """SELECT id, settings FROM tk_agents WHERE id > :after AND settings LIKE '%"mcp_servers":{"%'
    ORDER BY id LIMIT :limit"""
)
# Held until the settings are written back, so that no change by the owner is lost.
_LOCK = Statement("SELECT settings FROM tk_agents WHERE id = :id", locks="FOR UPDATE")
_KEEP = Statement("UPDATE tk_agents SET settings = :settings WHERE id = :id")

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
    """Writes settings into their column and reads them from it."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._encoder = msgspec.json.Encoder(enc_hook=self._sealed)
        self._decoder = msgspec.json.Decoder(AgentSettings, dec_hook=self._built)

    def encode(self, settings: AgentSettings) -> str:
        """Settings as stored."""
        return self._encoder.encode(settings).decode()

    def decode(self, text: str) -> AgentSettings:
        """Stored settings; their secrets stay encrypted until used."""
        return self._decoder.decode(text)

    def remember_key(self, settings: AgentSettings) -> Plan[None]:
        """Records which key is needed from now on, if these settings hold a secret."""
        if any(server.secrets for server in settings.mcp_servers.values()):
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
        for id_, _ in found:
            unreadable += await database.write(lambda id_=id_: _reseal(column, id_))
        after = found[-1][0]
    return unreadable


def _reseal(column: SettingsColumn, id_: str) -> Plan[int]:
    """Re-encrypts one agent's settings with the first key; returns how many secrets are unreadable."""
    rows = yield _LOCK(id=id_)
    if not rows:
        return 0
    settings = column.decode(rows[0][0])
    yield _KEEP(id=id_, settings=column.encode(settings))
    kept = (secret for server in settings.mcp_servers.values() for secret in server.secrets.values())
    return sum(isinstance(secret, SealedSecret) and not secret.is_readable for secret in kept)
