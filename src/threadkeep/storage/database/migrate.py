"""Plain SQL migrations, applied in order, each once, and recorded in a table."""

import sqlite3
import time
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.text import BLANK_CHARACTERS
from threadkeep.ports.turn_log import RebuildReply
from threadkeep.storage import old_files, old_messages
from threadkeep.storage.database.connector import Plan, Statement


class Migration(NamedTuple):
    """One file of `migrations/`: its number, its name, its statements."""

    version: int
    name: str
    statements: tuple[Statement, ...]


_CREATE = Statement(
    """CREATE TABLE IF NOT EXISTS tk_migrations (
        version bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)"""
)
HAS_TABLE = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name = 'tk_migrations'",
    postgres="SELECT count(*) FROM pg_class WHERE oid = to_regclass('tk_migrations')",
)
APPLIED = Statement("SELECT version FROM tk_migrations ORDER BY version")
_REMEMBER = Statement("INSERT INTO tk_migrations (version, name, applied_at) VALUES (:version, :name, :now)")


def migrations(dialect: Literal["sqlite", "postgres"]) -> list[Migration]:
    """The migrations that this version of Threadkeep ships.

    `0001_name.sql` is for both databases; `0001_name.sqlite.sql` and `0001_name.postgres.sql` hold what only
    one of them needs, and run after it.
    """
    parts: dict[str, tuple[Statement, ...]] = {}
    files = (resources.files("threadkeep.storage.database") / "migrations").iterdir()
    for file in sorted(files, key=lambda file: (file.name.count("."), file.name)):
        name, _, kind = file.name.partition(".")
        if kind in {"sql", f"{dialect}.sql"}:
            parts[name] = (*parts.get(name, ()), *_statements(file.read_text(encoding="utf-8")))
    return [Migration(int(name[:4]), name, statements) for name, statements in sorted(parts.items())]


def missing_migrations(known: list[Migration]) -> Plan[list[Migration]]:
    """The migrations a database still needs. Refuses one that a newer Threadkeep has changed."""
    ((has_table,),) = yield HAS_TABLE()
    applied = {version for (version,) in (yield APPLIED())} if has_table else set[int]()
    if unknown := applied - {migration.version for migration in known}:
        raise StorageRefused(
            f"A newer Threadkeep has migrated this database (migration {max(unknown)}; this version knows "
            f"{known[-1].version}). Upgrade Threadkeep. The data was not changed."
        )
    return [migration for migration in known if migration.version not in applied]


def migrate(known: list[Migration]) -> Plan[int]:
    """Applies the missing migrations; must run alone."""
    missing = yield from missing_migrations(known)
    yield _CREATE()
    for migration in missing:
        for statement in migration.statements:
            yield statement()
        now = int(time.time() * 1000)
        yield _REMEMBER(version=migration.version, name=migration.name, now=now)
    return len(missing)


def convert_some(rebuild: RebuildReply | None) -> Plan[bool]:
    """Migrations' steps in Python that need only the database; returns whether some work may be left."""
    more = yield from old_messages.rebuild_some(rebuild)
    yield from old_files.drop_converted()
    return more


def check_migrated(known: list[Migration]) -> Plan[None]:
    """Refuses a database that this version cannot read as is."""
    applied = {version for (version,) in (yield APPLIED())}
    ((old_replies,),) = yield old_messages.IS_WAITING()
    ((old_file_tables,),) = yield old_files.IS_WAITING()
    if applied != {migration.version for migration in known} or old_replies or old_file_tables:
        raise StorageRefused(
            "The database has a different version. Start this version's server once to migrate it."
        )


@cache  # a host or a test may open several databases
def _statements(text: str) -> tuple[Statement, ...]:
    """Splits a file into statements; `;` inside a literal or a comment does not end one."""
    statements: list[Statement] = []
    pending = ""
    for part in text.splitlines(keepends=True):
        if not pending and (not part.strip() or part.lstrip().startswith("--")):
            continue
        pending += part
        if sqlite3.complete_statement(pending):
            statements.append(Statement(pending.strip().replace(":blank", f"'{BLANK_CHARACTERS}'")))
            pending = ""
    if pending.strip():
        raise StorageRefused("A migration does not end with a complete statement.")
    return tuple(statements)
