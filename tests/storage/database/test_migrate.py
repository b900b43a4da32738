"""The schema comes by itself, once, and touches nothing of what stands beside it."""

import asyncio
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, LiteralString

import psycopg
import pytest

from tests.making import ALICE, BOB, NOW, all_messages, keep_agent, keep_conversation, keep_turn
from tests.postgres import Postgres
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import migrations
from threadkeep.storage.store import open_database, open_snapshot, sqlite_path, store_on

Ship = Callable[[Mapping[str, str]], None]

VERSIONS = Statement("SELECT version, name, applied_at FROM tk_migrations ORDER BY version")
PEOPLE = "CREATE TABLE tk_people (name text NOT NULL);\n"
PETS = "CREATE TABLE tk_pets (name text NOT NULL);\n"

# Tables, indexes, views and sequences, and what hangs on them, as the database's own catalog has them.
CATALOG: tuple[LiteralString, ...] = (
    """SELECT c.oid, c.relname, c.relkind, c.relowner, c.relacl::text, c.relfilenode, c.relrowsecurity,
        c.reloptions
    FROM pg_class AS c WHERE {which} ORDER BY c.oid""",
    """SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull, a.attisdropped, d.adbin::text
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE {which} ORDER BY 1, 2""",
    """SELECT conrelid, conname, pg_get_constraintdef(pg_constraint.oid) FROM pg_constraint
    JOIN pg_class AS c ON c.oid = conrelid WHERE {which} ORDER BY 1, 2""",
    """SELECT tgrelid, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
    JOIN pg_class AS c ON c.oid = tgrelid WHERE {which} ORDER BY 1, 2""",
    "SELECT oid, nspname, nspowner, nspacl::text FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY oid",
    """SELECT oid, proname FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND proname !~ '^tk_' ORDER BY oid""",
    "SELECT oid, extname, extversion FROM pg_extension ORDER BY oid",
    "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting ORDER BY 1, 2",
)
IN_PUBLIC: LiteralString = "c.relnamespace = 'public'::regnamespace"
NOT_OURS: LiteralString = f"{IN_PUBLIC} AND c.relname !~ '^tk_'"
HOST_ROWS: tuple[LiteralString, ...] = (
    "SELECT xmin::text, ctid::text, * FROM users ORDER BY id",
    "SELECT xmin::text, ctid::text, * FROM tasks ORDER BY id",
)
HOST = """
CREATE TABLE users (id integer PRIMARY KEY, email text NOT NULL UNIQUE);
CREATE TABLE tasks (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users (id), title text);
CREATE INDEX tasks_by_user ON tasks (user_id);
CREATE VIEW open_tasks AS SELECT title FROM tasks;
INSERT INTO users VALUES (1, 'alice@example.org'), (2, 'bob@example.org');
INSERT INTO tasks VALUES (1, 1, 'water the plants'), (2, 2, 'buy milk');
"""


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ship:
    """Makes this Threadkeep one that ships other migrations."""
    folder = tmp_path / "shipped" / "migrations"
    folder.mkdir(parents=True)

    def files(_: str) -> Path:
        return folder.parent

    monkeypatch.setattr("threadkeep.storage.database.migrate.resources.files", files)

    def ship(files: Mapping[str, str]) -> None:
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")

    return ship


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database in which nothing is yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/data/threadkeep.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database()


async def open_and_close(url: str, schema: str | None = None) -> None:
    await (await open_database(url, schema=schema, pool_size=1)).close()


def run(url: str, script: LiteralString) -> None:
    """Runs a script beside Threadkeep."""
    if url.startswith("sqlite"):
        sqlite_path(url).parent.mkdir(exist_ok=True)
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url) as connection:
            connection.execute(script)


def relations(url: str) -> set[str]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
            return {name for (name,) in found}
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            """SELECT relname FROM pg_class
            WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"""
        )
        return {name for (name,) in rows}


def everything(url: str) -> Sequence[object]:
    """The schema, and the rows as far as they are looked at: to be compared with a later state."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            return list(connection.iterdump())
    with psycopg.connect(url) as connection:
        return catalog(connection, IN_PUBLIC, "SELECT xmin::text, * FROM tk_migrations ORDER BY version")


def catalog(
    connection: psycopg.Connection, which: LiteralString, *more: LiteralString
) -> list[list[tuple[object, ...]]]:
    queries: list[LiteralString] = [*CATALOG, *more]
    return [connection.execute(query.replace("{which}", which)).fetchall() for query in queries]


async def versions(database: Database) -> list[tuple[int, str]]:
    return [(version, name) for version, name, _ in await database.fetch(VERSIONS())]


async def test_migrations_are_applied_once_and_remembered(fresh_url: str):
    seen: list[object] = []
    for _ in range(2):
        database = await open_database(fresh_url, pool_size=1)
        seen.append(await database.fetch(VERSIONS()))
        assert await versions(database) == [(it.version, it.name) for it in migrations(database.dialect)]
        await database.close()
    assert seen[0] == seen[1]


async def test_everything_of_ours_carries_the_prefix(fresh_url: str):
    await open_and_close(fresh_url)
    found = relations(fresh_url)
    assert {"tk_migrations", "tk_conversations", "tk_messages"} <= found
    assert {name for name in found if not name.startswith("tk_")} == set()


async def test_later_migration_is_added_to_what_is_there(fresh_url: str, ship: Ship):
    ship({"0001_people.sql": PEOPLE})
    await open_and_close(fresh_url)
    run(fresh_url, "INSERT INTO tk_people VALUES ('Ada')")
    ship({"0001_people.sql": PEOPLE, "0002_pets.sql": PETS})
    database = await open_database(fresh_url, pool_size=1)
    assert await versions(database) == [(1, "0001_people"), (2, "0002_pets")]
    assert [*await database.fetch(Statement("SELECT name FROM tk_people")())] == [("Ada",)]
    assert [*await database.fetch(Statement("SELECT name FROM tk_pets")())] == []
    await database.close()


async def test_migration_that_fails_leaves_nothing_behind(fresh_url: str, ship: Ship):
    ship({"0001_people.sql": PEOPLE})
    await open_and_close(fresh_url)
    before = everything(fresh_url)
    ship({"0001_people.sql": PEOPLE, "0002_pets.sql": f"{PETS}INSERT INTO tk_unknown VALUES (1);\n"})
    with pytest.raises(StorageRefused):
        await open_database(fresh_url, pool_size=1)
    assert everything(fresh_url) == before
    ship({"0001_people.sql": PEOPLE, "0002_pets.sql": PETS})
    await open_and_close(fresh_url)
    assert {"tk_people", "tk_pets"} <= relations(fresh_url)


NEWER = "INSERT INTO tk_migrations VALUES (9999, '9999_future', 0)"
FROM_DEVELOPMENT = """DELETE FROM tk_migrations;
    INSERT INTO tk_migrations VALUES (1, '0001_initial', 0), (12, '0012_files_by_content', 0)"""
UNFINISHED = "CREATE TABLE tk_files_before (id text)"
NOT_OURS_TO_MIGRATE: dict[LiteralString, str] = {
    NEWER: r"newer Threadkeep has migrated this database \(migration 9999; .* Upgrade Threadkeep",
    FROM_DEVELOPMENT: "before 0.1.0, .* Start commit 8c86409 on it once",
    UNFINISHED: "before 0.1.0, .* Start commit 8c86409 on it once",
}


@pytest.mark.parametrize(
    ("change", "told"), NOT_OURS_TO_MIGRATE.items(), ids=["newer", "from development", "half upgraded"]
)
async def test_database_that_this_version_cannot_migrate_is_refused_and_untouched(
    database_url: str, change: LiteralString, told: str
):
    run(database_url, change)
    before = everything(database_url)
    for open_it in (open_database, open_snapshot):
        with pytest.raises(StorageRefused, match=f"{told}.* The data was not changed"):
            await open_it(database_url)
    assert everything(database_url) == before


async def test_database_that_development_versions_brought_to_the_first_release_is_complete(database_url: str):
    run(database_url, "INSERT INTO tk_migrations VALUES (1, '0001_initial', 0), (12, '0012_files', 0)")
    before = everything(database_url)
    await open_and_close(database_url)
    await (await open_snapshot(database_url)).close()
    assert everything(database_url) == before


async def test_commands_that_read_refuse_a_database_that_is_not_migrated(fresh_url: str, ship: Ship):
    ship({"0001_people.sql": PEOPLE})
    await open_and_close(fresh_url)
    ship({"0001_people.sql": PEOPLE, "0002_pets.sql": PETS})
    with pytest.raises(StorageRefused, match="Start this version's server once"):
        await open_snapshot(fresh_url)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from threadkeep.storage.database import migrate, postgres, sqlite
from threadkeep.storage.store import open_database

migrate.resources.files = lambda _: Path(sys.argv[2])

def look(query):
    if "INSERT INTO tk_migrations" in query.statement.sqlite:
        os.kill(os.getpid(), signal.SIGKILL)

rows, run_one = sqlite._rows, postgres._run

def get_rows(connection, query):
    look(query)
    return rows(connection, query)

async def run(connection, query):
    look(query)
    return await run_one(connection, query)

sqlite._rows, postgres._run = get_rows, run
asyncio.run(open_database(sys.argv[1], pool_size=1))
"""


async def test_migration_that_is_killed_is_applied_at_the_next_start(
    fresh_url: str, ship: Ship, tmp_path: Path
):
    ship({"0001_people.sql": PEOPLE})
    await open_and_close(fresh_url)
    before = everything(fresh_url)
    ship({"0001_people.sql": PEOPLE, "0002_pets.sql": PETS})
    command = [sys.executable, "-c", KILLED, fresh_url, str(tmp_path / "shipped")]
    killed = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert everything(fresh_url) == before
    await open_and_close(fresh_url)
    assert {"tk_people", "tk_pets"} <= relations(fresh_url)


async def test_host_tables_in_our_file_stay_as_they_were(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/host/app.db"
    run(url, HOST)
    before = everything(url)
    await open_and_close(url)
    after = everything(url)
    assert len(after) > len(before)
    # A dump with our search tables in it takes two lines around them to be read back.
    theirs = [it for it in after if not str(it).startswith("PRAGMA writable_schema")]
    assert [it for it in theirs if not re.search(r"[ \"'(]tk_", str(it))] == before


@pytest.mark.parametrize("schema", [None, "threads"])
async def test_host_tables_in_our_database_stay_as_they_were(postgres: Postgres, schema: str | None):
    url = postgres.create_database()
    run(url, HOST)
    if schema:
        run(url, "CREATE SCHEMA threads")
    with psycopg.connect(url, autocommit=True) as host:
        before = catalog(host, NOT_OURS, *HOST_ROWS)
        store = await store_on(await open_database(url, schema=schema, pool_size=2))
        agent = await keep_agent(store, visibility="public")
        for user in (ALICE, BOB):
            await keep_turn(store, await keep_conversation(store, agent, user), "q", "a")
        assert await store.users.delete(ALICE, NOW)
        await store.close()
        assert catalog(host, NOT_OURS, *HOST_ROWS) == before


@pytest.mark.parametrize("schema", ["threads", "user"])
async def test_tables_live_in_a_schema_of_their_own(postgres: Postgres, schema: str):
    url = postgres.create_database()
    store = await store_on(await open_database(url, schema=schema, pool_size=2))
    conversation = await keep_turn(store, await keep_conversation(store, await keep_agent(store)), "q", "a")
    await store.close()
    with psycopg.connect(url) as connection:
        homes = connection.execute(
            """SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class WHERE relname ~ '^tk_'"""
        ).fetchall()
        assert [home.strip('"') for (home,) in homes] == [schema]

    again = await store_on(await open_database(url, schema=schema, pool_size=1))
    assert len(await all_messages(again, conversation)) == 2
    await again.close()
    elsewhere = await store_on(await open_database(url, schema="elsewhere", pool_size=1))
    assert await all_messages(elsewhere, conversation) == []
    await elsewhere.close()


@pytest.mark.parametrize("schema", [None, "threads"])
async def test_nodes_that_start_together_migrate_once(postgres: Postgres, schema: str | None):
    url = postgres.create_database()
    await asyncio.gather(*(open_and_close(url, schema) for _ in range(6)))
    database = await open_database(url, schema=schema, pool_size=1)
    assert await versions(database) == [(it.version, it.name) for it in migrations("postgres")]
    await database.close()


OPEN = """
import asyncio, sys
from threadkeep.storage.store import open_database

async def main():
    await (await open_database(sys.argv[1], pool_size=1)).close()

input()
asyncio.run(main())
"""


def test_processes_that_start_together_migrate_once(postgres: Postgres):
    url = postgres.create_database()
    command = [sys.executable, "-c", OPEN, url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.close()
    assert [process.wait() for process in processes] == [0, 0]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM tk_migrations").fetchone() == (
            len(migrations("postgres")),
        )


def test_file_is_split_where_statements_end(ship: Ship):
    ship(
        {
            "0002_b.sql": "SELECT 1;",
            "notes.txt": "not a migration",
            "0001_a.sql": """-- A comment; with a semicolon.

            CREATE TABLE tk_a (
                -- Why; not what.
                x text DEFAULT 'a;b' -- it''s; so
            );

            -- Between.
            CREATE TABLE tk_b (y text CHECK (trim(y, :blank) <> '')); -- After.
            SELECT "odd;name" FROM tk_a;

            -- The end.
            """,
        }
    )
    first, second = migrations("sqlite")
    assert (first.version, first.name) == (1, "0001_a")
    assert (second.version, second.name) == (2, "0002_b")
    assert [it.sqlite.split("(")[0].strip() for it in first.statements] == [
        "CREATE TABLE tk_a", "CREATE TABLE tk_b", 'SELECT "odd;name" FROM tk_a;',
    ]  # fmt: skip
    assert all(it.sqlite == it.postgres and not it.sqlite_names for it in first.statements)
    assert "\u3000" in first.statements[1].sqlite


def test_file_that_breaks_off_is_refused(ship: Ship):
    ship({"0001_a.sql": "CREATE TABLE tk_a (x text);\nCREATE TABLE tk_b (x text DEFAULT ';"})
    with pytest.raises(StorageRefused, match="complete statement"):
        migrations("sqlite")


def test_what_one_database_has_alone_comes_after_what_both_have(ship: Ship):
    ship(
        {
            "0001_a.postgres.sql": "SELECT 'postgres';",
            "0001_a.sql": "SELECT 'both';",
            "0001_a.sqlite.sql": "SELECT 'sqlite';",
        }
    )
    for dialect in ("sqlite", "postgres"):
        (only,) = migrations(dialect)
        assert (only.version, only.name) == (1, "0001_a")
        assert [it.sqlite for it in only.statements] == ["SELECT 'both';", f"SELECT '{dialect}';"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_shipped_migrations_are_numbered_without_a_gap(dialect: Literal["sqlite", "postgres"]):
    shipped = migrations(dialect)
    assert [it.version for it in shipped] == list(range(13, 13 + len(shipped)))
