"""Plain SQL migrations, applied in order, each once, and recorded in a table."""

import sqlite3
import time
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.text import BLANK_CHARACTERS
from threadkeep.storage.database.connector import Plan, Statement


class Migration(NamedTuple):
    """One file of `migrations/`: its number, its name, its statements."""

    version: int
    name: str
    statements: tuple[Statement, ...]


class Incompatible(NamedTuple):
    """Why this version can't migrate a database, and what to do about it."""

    reason: str
    advice: str


_CREATE = Statement(
    """CREATE TABLE IF NOT EXISTS tk_migrations (
        version bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)"""
)
# Asked first: looking at a database must not create the table.
_HAS_TABLE = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name = 'tk_migrations'",
    postgres="SELECT count(*) FROM pg_class WHERE oid = to_regclass('tk_migrations')",
)
_APPLIED = Statement("SELECT version FROM tk_migrations ORDER BY version")
_REMEMBER = Statement("INSERT INTO tk_migrations (version, name, applied_at) VALUES (:version, :name, :now)")
# Migrations 2 and 12 had steps in Python, which dropped these tables when they were done.
_IS_UNFINISHED = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name IN ('tk_messages_before', 'tk_files_before')",
    postgres="""SELECT count(*) FROM pg_class
    WHERE oid IN (to_regclass('tk_messages_before'), to_regclass('tk_files_before'))""",
)

_FROM_DEVELOPMENT = Incompatible(
    "A development version from before 0.1.0, the first release, wrote this database.",
    "Start commit 8c86409 on it once, which upgrades it; then start this version.",
)


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


def missing_migrations(known: Sequence[Migration]) -> Plan[Sequence[Migration] | Incompatible]:
    """The migrations that a database still needs, in order, unless this version can't migrate it."""
    ((has_table,),) = yield _HAS_TABLE()
    applied = {version for (version,) in (yield _APPLIED())} if has_table else set[int]()
    first, last = known[0].version, known[-1].version
    if newer := {version for version in applied if version > first} - {it.version for it in known}:
        return Incompatible(
            f"A newer Threadkeep has migrated this database (migration {max(newer)}; this version knows "
            f"{last}).",
            "Upgrade Threadkeep, or restore a backup from before the upgrade.",
        )
    ((is_unfinished,),) = yield _IS_UNFINISHED()
    if applied and (first not in applied or is_unfinished):
        return _FROM_DEVELOPMENT
    return [migration for migration in known if migration.version not in applied]


def migrations_to_apply(known: Sequence[Migration]) -> Plan[Sequence[Migration]]:
    """The missing migrations. Refuses a database that this version can't migrate."""
    missing = yield from missing_migrations(known)
    if isinstance(missing, Incompatible):
        raise StorageRefused(f"{missing.reason} {missing.advice} The data was not changed.")
    return missing


def migrate(known: Sequence[Migration]) -> Plan[int]:
    """Applies the missing migrations; must run alone."""
    missing = yield from migrations_to_apply(known)
    yield _CREATE()
    for migration in missing:
        for statement in migration.statements:
            yield statement()
        now = int(time.time() * 1000)
        yield _REMEMBER(version=migration.version, name=migration.name, now=now)
    return len(missing)


def check_migrated(known: Sequence[Migration]) -> Plan[None]:
    """Refuses a database that this version can't read as it is."""
    if (yield from migrations_to_apply(known)):
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
