"""A look at a database that changes nothing, also beside a server that runs on it."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.errors import SettingsError, StorageRefused
from threadkeep.domain.ids import AgentId
from threadkeep.storage.agent_settings import SettingsColumn
from threadkeep.storage.database import Query, Rows, Statement
from threadkeep.storage.migrate import migrations
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import sqlite_path

_HAS_TABLES = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name = 'tk_migrations'",
    postgres="SELECT count(*) FROM pg_class WHERE oid = to_regclass('tk_migrations')",
)
_APPLIED = Statement("SELECT version FROM tk_migrations ORDER BY version")
_VERSION = Statement("SELECT sqlite_version()", postgres="SELECT current_setting('server_version')")
_KEY = Statement("SELECT value FROM tk_meta WHERE name = 'secret_key'")
_SERVERS = Statement(
    """SELECT id, name, settings FROM tk_agents
    WHERE deleted_at IS NULL AND settings LIKE '%"mcp_servers":{"%' ORDER BY id LIMIT 1000"""
)
_REFUSAL = Statement(
    "SELECT NULL",
    postgres="""SELECT CASE WHEN pg_is_in_recovery() THEN 'It is a replica, which can only be read.'
        WHEN NOT has_schema_privilege(current_schema(), 'CREATE')
        THEN 'Its user may not make tables in the schema ' || current_schema() || '.' END""",
)

Fetch = Callable[[Query], Awaitable[Rows]]


@dataclass(frozen=True, slots=True)
class KeptAgent:
    """An agent that has MCP servers."""

    id: AgentId
    name: str
    settings: AgentSettings


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen. `refusal` tells why it cannot be written."""

    version: str
    missing: Sequence[int]
    unknown: Sequence[int]
    refusal: str | None
    sealing_key: str | None
    agents: Sequence[KeptAgent]


async def look_at(url: str, *, schema: str | None, box: SecretBox) -> Look | None:
    """Looks at the database that a URL names; None where there is no file yet."""
    if not url.startswith("sqlite:"):
        async with _postgres(url, schema) as fetch:
            return await _look(fetch, "postgres", None, box)
    path = sqlite_path(url)
    if not path.exists():
        return None
    refusal = None if os.access(path, os.W_OK) else f"The file {path} can only be read."
    async with _sqlite(path) as fetch:
        return await _look(fetch, "sqlite", refusal, box)


async def _look(
    fetch: Fetch, dialect: Literal["sqlite", "postgres"], refusal: str | None, box: SecretBox
) -> Look:
    ((version,),) = await fetch(_VERSION())
    known = {it.version for it in migrations(dialect)}
    ((has_tables,),) = await fetch(_HAS_TABLES())
    applied = {number for (number,) in await fetch(_APPLIED())} if has_tables else set[int]()
    ((refused,),) = await fetch(_REFUSAL())
    keys: Rows = ()
    agents: Rows = ()
    if applied and not known - applied:  # else they may not be what we take them for
        keys, agents = await fetch(_KEY()), await fetch(_SERVERS())
    column = SettingsColumn(box)
    return Look(
        version=str(version),
        missing=sorted(known - applied),
        unknown=sorted(applied - known),
        refusal=refusal or refused,
        sealing_key=keys[0][0] if keys else None,
        agents=[KeptAgent(AgentId(str(id_)), name, column.decode(kept)) for id_, name, kept in agents],
    )


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncGenerator[Fetch]:
    # Where nobody has it open there is no log, and a reader would make one.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"

    def fetch(query: Query) -> Rows:
        statement, values = query
        uri = f"{path.resolve().as_uri()}?{how}"
        with closing(sqlite3.connect(uri, uri=True, timeout=10)) as connection:
            given = [values[name] for name in statement.sqlite_names]
            return connection.execute(statement.sqlite, given).fetchall()

    try:
        yield lambda query: asyncio.to_thread(fetch, query)
    except sqlite3.Error as exc:
        raise StorageRefused(f"The database {path} cannot be read: {exc}.") from exc


@asynccontextmanager
async def _postgres(url: str, schema: str | None) -> AsyncGenerator[Fetch]:
    try:
        from threadkeep.storage.postgres import reading_connection  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise SettingsError("PostgreSQL needs the extra: pip install 'threadkeep[postgres]'.") from exc
    async with reading_connection(url, schema) as fetch:
        yield fetch
