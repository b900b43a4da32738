"""Data of released versions, for both databases: `version-0.1.0` and so on, made by `make_release.py`."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString, cast

import msgspec
import psycopg
from psycopg import sql

from threadkeep.domain.data_folder import DATABASE
from threadkeep.storage.database.backup import restore
from threadkeep.storage.database.migrate import migrations

RELEASED = sorted(Path(__file__).parent.glob("version-*"))
BACKUP, FACTS = "backup.tar.gz", "facts.json.gz"

TABLES = """SELECT name FROM sqlite_master
    WHERE type = 'table' AND name GLOB 'tk_*' AND name NOT GLOB 'tk_*_terms*' ORDER BY name"""
MIGRATIONS = """CREATE TABLE tk_migrations (
    version bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)"""
BOOLEANS = """SELECT column_name::text FROM information_schema.columns
    WHERE table_name = %s AND data_type = 'boolean'"""


def restore_release(released: Path, folder: Path) -> dict[str, Any]:
    """Fills a data folder as the release left it; returns what is in it."""
    restore(released / BACKUP, folder)
    return msgspec.json.decode(gzip.decompress((released / FACTS).read_bytes()))


def copy_to_postgres(folder: Path, url: str) -> None:
    """Loads the rows of a data folder into an empty PostgreSQL database with the tables of that version."""
    with closing(sqlite3.connect(folder / DATABASE)) as source, psycopg.connect(url) as target:
        applied = {version for (version,) in source.execute("SELECT version FROM tk_migrations")}
        for migration in migrations("postgres"):
            for statement in migration.statements if migration.version in applied else ():
                target.execute(cast("LiteralString", statement.postgres))
        target.execute(MIGRATIONS)
        # As on a replica: no row asks for another.
        target.execute("SET session_replication_role = replica")
        for (table,) in source.execute(TABLES).fetchall():
            _copy_table(source, target, table)


def _copy_table(source: sqlite3.Connection, target: psycopg.Connection, table: str) -> None:
    cursor = source.execute(f"SELECT * FROM {table}")
    names = [name for name, *_ in cursor.description]
    booleans = {name for (name,) in target.execute(BOOLEANS, [table])}
    rows = [
        [
            bool(value) if name in booleans and value is not None else value
            for name, value in zip(names, row, strict=True)
        ]
        for row in cursor
    ]
    insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join([sql.Placeholder()] * len(names)),
    )
    target.cursor().executemany(insert, rows)
