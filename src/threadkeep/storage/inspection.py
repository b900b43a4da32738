"""A look at a database that changes nothing, even while a server runs on it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.retention.rule import Rule, operators_rule
from threadkeep.domain.sign_in.session import Invitation
from threadkeep.ports.gateways import SavedGateway
from threadkeep.storage.agent_settings import SettingsColumn
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import Incompatible, migrations, missing_migrations
from threadkeep.storage.gateways import ALL_GATEWAYS, gateways_in
from threadkeep.storage.retention.idle_conversations import SqlIdleConversations
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.sign_in.invitations import SqlInvitations
from threadkeep.storage.store import open_snapshot, sqlite_path

_VERSION = Statement("SELECT sqlite_version()", postgres="SELECT current_setting('server_version')")
# The agents whose servers, rules and budgets the checks look at; a first choice by text.
_AGENTS = Statement(
    """SELECT id, name, settings, remote FROM tk_agents
    WHERE deleted_at IS NULL AND (remote IS NOT NULL
        OR settings LIKE '%"mcp_servers":{"%' OR settings LIKE '%"tools":{"%'
        OR settings NOT LIKE '%"budget_month":"0.00"%') ORDER BY id LIMIT 1000"""
)
_KEYS = Statement(
    """SELECT name, user_id FROM tk_keys
    WHERE budget_month > 0 AND (expires_at IS NULL OR expires_at > :now) ORDER BY id LIMIT 1000"""
)
# How many connections the server has for everybody. SQLite needs none.
_CONNECTIONS = Statement(
    "SELECT NULL",
    postgres="""SELECT current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int""",
)
# Why nothing could be written, before anybody tries. For SQLite, the file's permissions say it.
_REFUSAL = Statement(
    "SELECT NULL",
    postgres="""SELECT CASE WHEN pg_is_in_recovery() THEN 'It is a replica, which can only be read.'
        WHEN current_setting('server_encoding') <> 'UTF8'
        THEN 'It keeps text as ' || current_setting('server_encoding') || ', not as UTF8.'
        WHEN NOT has_schema_privilege(current_schema(), 'CREATE')
        THEN 'Its user may not make tables in the schema ' || current_schema() || '.' END""",
)


@dataclass(frozen=True, slots=True)
class KeptAgent:
    """An agent that has MCP servers, rules for tools or a budget, or that another server runs."""

    id: AgentId
    name: str
    settings: AgentSettings
    remote: RemoteAgent | None = None


@dataclass(frozen=True, slots=True)
class KeyWithBudget:
    """An API key that has a budget, and its user."""

    name: str
    user_id: UserId


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found."""

    version: str
    missing_count: int
    """How many migrations the next start applies."""
    incompatible: Incompatible | None
    """Why this version can't migrate the database."""
    refusal: str | None
    """Why the database can't be written."""
    most_connections: int | None
    """How many connections the database server accepts; None if it needs none."""
    agents: Sequence[KeptAgent]
    gateways: Sequence[SavedGateway]
    keys_with_budgets: Sequence[KeyWithBudget]
    open_invitations: Sequence[Invitation]
    conversations_to_delete: int
    """How many will be deleted because nobody writes in them, as their users were told."""
    conversations_to_note: int
    """How many the next sweep would add."""


async def inspect_database(
    url: str, *, schema: str | None, box: SecretBox, now: int = 0, delete_after_days: int = 0
) -> Inspection | None:
    """Inspects the database at a URL; None if the file doesn't exist yet."""
    refusal = None
    if url.startswith("sqlite:"):
        path = sqlite_path(url)
        if not path.exists():
            return None
        refusal = None if os.access(path, os.W_OK) else f"The file {path} is read-only."
    database = await open_snapshot(url, schema=schema, as_found=True)
    try:
        return await _inspect(database, refusal, box, operators_rule(delete_after_days), now)
    finally:
        await database.close()


async def _inspect(
    database: Database, refusal: str | None, box: SecretBox, rule: Rule | None, now: int
) -> Inspection:
    ((version,),) = await database.fetch(_VERSION())
    missing = await database.read(lambda: missing_migrations(migrations(database.dialect)))
    ((refused,),) = await database.fetch(_REFUSAL())
    ((most_connections,),) = await database.fetch(_CONNECTIONS())
    # In a database of another version the columns may mean something else.
    agents = await database.fetch(_AGENTS()) if not missing else ()
    gateways = await database.fetch(ALL_GATEWAYS()) if not missing else ()
    keys = await database.fetch(_KEYS(now=now)) if not missing else ()
    idle = SqlIdleConversations(database)
    column = SettingsColumn(box)
    return Inspection(
        version=str(version),
        missing_count=0 if isinstance(missing, Incompatible) else len(missing),
        incompatible=missing if isinstance(missing, Incompatible) else None,
        refusal=refusal or refused,
        most_connections=most_connections,
        agents=[
            KeptAgent(AgentId(id_), name, column.decode(kept), column.decode_remote(remote))
            for id_, name, kept, remote in agents
        ],
        gateways=gateways_in(gateways, box),
        keys_with_budgets=[KeyWithBudget(name, user_id) for name, user_id in keys],
        open_invitations=await SqlInvitations(database).open_ones(now) if not missing else (),
        conversations_to_delete=(await idle.noted())[0] if not missing else 0,
        conversations_to_note=await idle.count_untold(rule, now) if not missing else 0,
    )
