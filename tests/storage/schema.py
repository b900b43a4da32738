"""The schema of a database as text that can be compared and read: `schema.sqlite.sql`, `schema.postgres.sql`.

    python -m tests.storage.schema     writes both files anew, as the migrations build them

The two files were first written by the thirteen migrations from which the first release's one was made.
"""

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from tests.postgres import open_postgres
from threadkeep.domain.text import BLANK_CHARACTERS
from threadkeep.storage.store import open_database

FOLDER = Path(__file__).parent
SQLITE, POSTGRES = FOLDER / "schema.sqlite.sql", FOLDER / "schema.postgres.sql"

_COMMENT = re.compile(r"--[^\n]*")
# What lies between the quotes stays as it is; blanks elsewhere become one.
_TOKEN = re.compile(r"('(?:[^']|'')*')|\s+")

# One statement a relation, so that a difference names it. Columns come by name: PostgreSQL adds a column at
# the end, and no statement of ours depends on their order.
_COLUMNS = """SELECT relname, attname, concat_ws(' ', format_type(atttypid, atttypmod),
        CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || attcollation::regcollation::text END,
        CASE WHEN attnotnull THEN 'NOT NULL' END,
        'DEFAULT ' || pg_get_expr(adbin, adrelid),
        CASE attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'IDENTITY' END,
        CASE WHEN attstorage <> typstorage THEN 'STORAGE ' || attstorage::text END)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm') AND attnum > 0
        AND NOT attisdropped ORDER BY relname, attname"""
# Since PostgreSQL 18, NOT NULL is a constraint too; the columns say it.
_CONSTRAINTS = """SELECT conrelid::regclass::text, conname, concat_ws(' ', pg_get_constraintdef(oid),
        CASE WHEN NOT convalidated THEN 'NOT VALID' END)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2"""
_TABLES = """SELECT relname, concat(relkind, relpersistence), array_to_string(reloptions, ', ') FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'S') ORDER BY relname"""
_STATEMENTS = (
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
    """SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ORDER BY proname""",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname",
    "SELECT 'CREATE EXTENSION ' || extname FROM pg_extension ORDER BY extname",
)


def sqlite_schema(file: Path) -> str:
    """Everything in `sqlite_master`, and the rows that the migrations inserted."""
    with closing(sqlite3.connect(file)) as connection:
        kept = connection.execute(
            # FTS5 keeps its own bookkeeping in tables beside the one that was declared.
            """SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT GLOB '*_terms_*'
            ORDER BY type, name"""
        ).fetchall()
        tables = [name for kind, name, _ in kept if kind == "table" and name != "tk_migrations"]
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    return _text((*(_normal(text) for _, _, text in kept), *_inserted(rows)))


def postgres_schema(url: str) -> str:
    """Everything in the schema `public` as the catalog has it, and the rows that the migrations inserted."""
    with psycopg.connect(url) as connection:
        columns = connection.execute(_COLUMNS).fetchall()
        constraints = connection.execute(_CONSTRAINTS).fetchall()
        tables = connection.execute(_TABLES).fetchall()
        described = (_table(name, kind, options, columns, constraints) for name, kind, options in tables)
        rows = {
            name: connection.execute(sql.SQL("TABLE {}").format(sql.Identifier(name))).fetchall()
            for name, kind, _ in tables
            if kind.startswith("r") and name != "tk_migrations"
        }
        others = [text for query in _STATEMENTS for (text,) in connection.execute(query)]
    return _text((*described, *others, *_inserted(rows)))


def _table(
    name: str,
    kind: str,
    options: str | None,
    columns: list[tuple[str, ...]],
    constraints: list[tuple[str, ...]],
) -> str:
    lines = [f"    {column} {text}" for table, column, text in columns if table == name]
    lines += [f"    CONSTRAINT {label} {text}" for table, label, text in constraints if table == name]
    word = {"rp": "TABLE", "ru": "UNLOGGED TABLE", "Sp": "SEQUENCE", "Su": "UNLOGGED SEQUENCE"}[kind]
    body = " (\n" + ",\n".join(lines) + "\n)" if lines else ""
    return f"CREATE {word} {name}{body}" + (f" WITH ({options})" if options else "")


def _normal(text: str) -> str:
    """A statement without its comments, its line breaks and the quotes that a renaming leaves."""
    plain = _TOKEN.sub(lambda it: it[1] or " ", _COMMENT.sub("", text)).replace('"', "")
    plain = plain.replace("( ", "(").replace(" )", ")")
    head, bracket, body = plain.partition("(")
    if not head.startswith("CREATE TABLE"):
        return plain
    return f"{head.strip()} {bracket}\n    " + ",\n    ".join(_split(body.removesuffix(")"))) + "\n)"


def _split(body: str) -> Iterator[str]:
    """The columns and constraints of a table: what commas outside of brackets and quotes part."""
    depth, begin, quoted = 0, 0, False
    for place, character in enumerate(body):
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == "," and not depth:
                yield body[begin:place].strip()
                begin = place + 1
    yield body[begin:].strip()


def _inserted(rows: dict[str, list[tuple[object, ...]]]) -> Iterator[str]:
    for table, found in rows.items():
        yield from (f"INSERT INTO {table} VALUES {row!r}" for row in found)


def _text(statements: Iterable[str]) -> str:
    text = "".join(f"{statement.strip()};\n" for statement in statements)
    return text.replace(f"'{BLANK_CHARACTERS}'", ":blank")


async def _build(url: str) -> None:
    await (await open_database(url, pool_size=1)).close()


def main() -> None:
    """Writes both files."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "threadkeep.db"
        asyncio.run(_build(f"sqlite:///{file}"))
        SQLITE.write_text(sqlite_schema(file), encoding="utf-8")
    server = open_postgres()
    try:
        url = server.create_database()
        asyncio.run(_build(url))
        POSTGRES.write_text(postgres_schema(url), encoding="utf-8")
    finally:
        server.close()


if __name__ == "__main__":
    main()
