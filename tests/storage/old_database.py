"""Databases of older versions, with conversations of every kind, for both databases."""

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

VERSION_1 = Path(__file__).parent / "version-1"
VERSION_8 = Path(__file__).parent / "version-8"
TABLES = """SELECT name FROM sqlite_master
    WHERE type = 'table' AND name GLOB 'tk_*' AND name NOT GLOB 'tk_*_terms*' ORDER BY name"""
MIGRATIONS = """CREATE TABLE tk_migrations (
    version bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)"""
BOOLEANS = """SELECT column_name::text FROM information_schema.columns
    WHERE table_name = %s AND data_type = 'boolean'"""


def restore_version_1(folder: Path) -> Path:
    """The data folder of the backup; the path of its database."""
    restore(VERSION_1 / "backup.tar.gz", folder)
    return folder / DATABASE


def restore_version_8(folder: Path) -> dict[str, Any]:
    """Fills the data folder from the backup; what is in it."""
    restore(VERSION_8 / "backup.tar.gz", folder)
    return msgspec.json.decode(gzip.decompress((VERSION_8 / "facts.json.gz").read_bytes()))


def old_messages() -> list[dict[str, Any]]:
    """Every message of it, as version 1 gave it."""
    lines = gzip.decompress((VERSION_1 / "messages.jsonl.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line) for line in lines]


def counts_of(file: Path) -> dict[str, int]:
    """How many rows each table of a SQLite file has."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        return {it: connection.execute(f"SELECT count(*) FROM {it}").fetchone()[0] for it in tables}


def copy_to_postgres(file: Path, url: str, *, schema: str = "public", version: int = 1) -> None:
    """Loads the rows of the file into an empty PostgreSQL database that has that version's tables."""
    with closing(sqlite3.connect(file)) as source, psycopg.connect(url) as target:
        target.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        target.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        for migration in migrations("postgres")[:version]:
            for statement in migration.statements:
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
    insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join([sql.Placeholder()] * len(names)),
    )
    target.cursor().executemany(insert, rows)
