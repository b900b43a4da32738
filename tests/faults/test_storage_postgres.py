"""A PostgreSQL that goes away: calls fail clearly, come back by themselves, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.conftest import TEMPLATE
from tests.postgres import Mode, Postgres, PostgresServer, free_port
from threadkeep.domain.errors import SettingsError, StorageConflict, StorageRefused, StorageUnavailable
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId, new_uuid
from threadkeep.storage.conversations import ConversationRows
from threadkeep.storage.database import postgres as storage_postgres
from threadkeep.storage.database.connector import Plan, Statement
from threadkeep.storage.database.postgres import PostgresDatabase
from threadkeep.storage.inspection import inspect_database
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import open_database
from threadkeep.storage.turn_log import SqlTurnLog

POOL_SIZE = 4
ADD = Statement("INSERT INTO tk_meta (name, value) VALUES (:name, '')")
NAMES = Statement("SELECT name FROM tk_meta")
OURS: LiteralString = (
    "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'threadkeep'"
)
SLEEP = Statement("SELECT pg_sleep(:seconds)")


def add_pair(name: str, *, pause: float = 0) -> Plan[None]:
    yield ADD(name=f"{name} 1")
    if pause:
        yield SLEEP(seconds=pause)
    yield ADD(name=f"{name} 2")


def pair(name: str) -> set[str]:
    return {f"{name} 1", f"{name} 2"}


async def stored(database: PostgresDatabase) -> set[str]:
    return {name for (name,) in await database.fetch(NAMES())}


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.create_database(template=TEMPLATE)


@pytest.fixture
async def database(url: str) -> AsyncIterator[PostgresDatabase]:
    database = await PostgresDatabase.open(url, schema=None, pool_size=POOL_SIZE)
    yield database
    await database.close()


async def works(database: PostgresDatabase) -> None:
    """Every connection of the pool reads and writes, more callers than connections at a time."""
    names = [new_uuid() for _ in range(3 * POOL_SIZE)]
    await asyncio.gather(
        *(database.write(lambda n=n: add_pair(n)) for n in names),
        *(database.fetch(NAMES()) for _ in names),
    )
    assert set[str]().union(*map(pair, names)) <= await stored(database)


def sleeping() -> Plan[None]:
    yield SLEEP(seconds=600)


@pytest.mark.parametrize("is_plan", [False, True], ids=["statement", "plan"])
async def test_read_that_a_frozen_server_never_answers_fails_clearly(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch, is_plan: bool
):
    monkeypatch.setattr(storage_postgres, "MOST_READ_S", 0.5)
    with pytest.raises(StorageUnavailable, match="Couldn't connect to the database"):
        await (database.read(sleeping) if is_plan else database.fetch(SLEEP(seconds=600)))
    monkeypatch.undo()
    await works(database)


async def test_restarts_under_load_fail_clearly_and_lose_nothing():
    with PostgresServer(durable=True) as server:
        database = await PostgresDatabase.open(server.url("postgres"), schema=None, pool_size=POOL_SIZE)
        acknowledged: set[str] = set()
        modes: tuple[Mode, ...] = ("fast", "immediate")
        for mode in modes:
            acknowledged |= await restart_under_load(server, database, mode)
            await works(database)
            kept = await stored(database)
            assert acknowledged <= kept
            assert {f"{name[:-1]}{end}" for name in kept for end in (1, 2)} == kept
        await database.close()


async def restart_under_load(server: PostgresServer, database: PostgresDatabase, mode: Mode) -> set[str]:
    """What was acknowledged before, while and after the server was away."""
    acknowledged: set[str] = set()
    restarting = True
    enough = asyncio.Event()

    async def repeat(call: Callable[[], Coroutine[Any, Any, object]]) -> int:
        """Calls until one succeeds after the restart; how many it took from then on."""
        tries = 0
        while True:
            tries += not restarting
            try:
                await call()
            except StorageUnavailable:
                await asyncio.sleep(0.01)
            else:
                if not restarting:
                    return tries

    async def write() -> None:
        name = new_uuid()
        await database.write(lambda: add_pair(name))
        acknowledged.update(pair(name))
        if len(acknowledged) > 50:
            enough.set()

    callers = [asyncio.create_task(repeat(write)) for _ in range(8)]
    callers += [asyncio.create_task(repeat(lambda: database.fetch(NAMES()))) for _ in range(4)]
    await enough.wait()
    await asyncio.to_thread(server.restart, mode)
    restarting = False
    assert max(await asyncio.gather(*callers)) <= 5
    return acknowledged


async def test_reads_survive_the_death_of_every_connection(url: str, database: PostgresDatabase):
    for callers in (1, 3 * POOL_SIZE):
        await works(database)
        hang_up(url)
        await asyncio.gather(*(database.fetch(NAMES()) for _ in range(callers)))
    await works(database)


async def test_write_whose_connection_dies_leaves_nothing(url: str, database: PostgresDatabase):
    writing = asyncio.create_task(database.write(lambda: add_pair("half", pause=60)))
    await asleep(url)
    hang_up(url)
    with pytest.raises(StorageUnavailable):
        await writing
    assert await stored(database) == set()
    await works(database)


async def test_cancelled_write_leaves_nothing_and_the_pool_usable(url: str, database: PostgresDatabase):
    for _ in range(2):
        # As many as there are connections, and some that still wait for one.
        writes = [
            asyncio.create_task(database.write(lambda n=n: add_pair(f"{n}", pause=60)))
            for n in range(POOL_SIZE + 3)
        ]
        await asleep(url, POOL_SIZE)
        for write in writes:
            write.cancel()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
        assert await stored(database) == set()
    await works(database)


async def test_write_cancelled_at_any_step_is_whole_or_absent(database: PostgresDatabase):
    for steps in range(12):
        write = asyncio.create_task(database.write(lambda n=steps: add_pair(f"{n}")))
        for _ in range(steps):
            await asyncio.sleep(0)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
    kept = await stored(database)
    assert {f"{name[:-1]}{end}" for name in kept for end in (1, 2)} == kept
    await works(database)


async def test_running_write_ends_before_the_database_is_closed(url: str):
    database = await PostgresDatabase.open(url, schema=None, pool_size=1)
    writing = asyncio.create_task(database.write(lambda: add_pair("last", pause=0.1)))
    await asleep(url)
    await database.close()
    await writing
    with pytest.raises(StorageUnavailable):
        await database.fetch(NAMES())
    with psycopg.connect(url) as connection:
        assert {name for (name,) in connection.execute("SELECT name FROM tk_meta")} == pair("last")


async def test_slow_readers_of_all_connections_keep_no_lease_and_no_log_waiting(database: PostgresDatabase):
    slow = [asyncio.create_task(database.fetch(SLEEP(seconds=60))) for _ in range(3 * POOL_SIZE)]
    log = SqlTurnLog(database, ConversationRows(SecretBox()))
    assert await log.renew("a-node", [TurnId(new_uuid())], 4_000) == {}
    assert await log.append([(LogChunk(TurnId(new_uuid()), 1, 1, "{}"), 1)]) == set()
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_nul_character_is_refused_and_nothing_else_suffers(database: PostgresDatabase):
    for name in ("\x00", "a\x00b"):
        with pytest.raises(StorageConflict, match="NUL"):
            await database.execute(ADD(name=name))
        with pytest.raises(StorageConflict):
            await database.write(lambda n=name: add_pair(n))
    assert await stored(database) == set()
    await works(database)


async def test_refusal_does_not_repeat_what_the_row_says(database: PostgresDatabase):
    await database.execute(ADD(name="my secret"))
    with pytest.raises(StorageConflict) as conflict:
        await database.execute(ADD(name="my secret"))
    assert "secret" not in conflict.value.message


async def refusal(url: str) -> str:
    with pytest.raises(StorageRefused) as refused:
        await PostgresDatabase.open(url, schema=None, pool_size=1)
    return refused.value.message


async def test_server_away_at_start_is_refused_without_the_password():
    message = await refusal(f"postgresql://me:hunter2@127.0.0.1:{free_port()}/db")
    assert "refused" in message and "hunter2" not in message


async def test_wrong_password_is_refused_without_any_password(url: str):
    password = urlsplit(url).password
    if password is None:
        pytest.skip("the server of THREADKEEP_TEST_POSTGRES_URL asks for no password")
    message = await refusal(url.replace(password, "hunter2"))
    assert "password authentication failed" in message
    assert "hunter2" not in message and password not in message


async def test_unknown_database_is_refused(postgres: Postgres):
    assert '"tk_nowhere" does not exist' in await refusal(postgres.url("tk_nowhere"))


async def test_database_without_the_right_to_write_is_refused(postgres: Postgres):
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(
                sql.Identifier(connection.info.dbname)
            )
        )
    assert "read-only transaction" in await refusal(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgres//me:hunter2@host/db",
        "postgresql:/me:hunter2@host/db",
        "me:hunter2@host/db",
        "mysql://me:hunter2@host/db",
        "postgresql://me:hunter2%zz@host/db",
        "postgresql://me:secret@hunter2@127.0.0.1/db",
        "postgresql://me:hunter2/x@127.0.0.1/db",
        "postgresql://127.0.0.1:hunter2/x@127.0.0.1/db",
        "postgresql://me:x@[hunter2/db",
        "postgresql://me@host/db?password=hunter2&sslmod=disable",
    ],
)
async def test_misspelt_url_is_refused_without_the_password(url: str):
    with pytest.raises(SettingsError) as refused:
        await open_database(url)
    assert "postgresql://" in refused.value.message
    assert "hunter2" not in refused.value.message
    assert refused.value.__cause__ is refused.value.__context__ is None


def hang_up(url: str) -> None:
    """Ends every connection of ours, as a restart or a firewall does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) {OURS}")


async def asleep(url: str, count: int = 1) -> None:
    """Returns once so many of our connections are in the middle of their work."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while True:
            cursor = await connection.execute(f"SELECT count(*) {OURS} AND wait_event = 'PgSleep'")
            if await cursor.fetchone() == (count,):
                return
            await asyncio.sleep(0.01)


async def test_database_that_cannot_keep_every_script_is_refused_and_not_touched(postgres: Postgres):
    url = await asyncio.to_thread(postgres.create_database_in, "SQL_ASCII")
    with pytest.raises(SettingsError, match="SQL_ASCII"):
        await PostgresDatabase.open(url, schema=None, pool_size=1)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        tables = await connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert await tables.fetchone() == (0,)
    look = await inspect_database(url, schema=None, box=SecretBox([]))  # as the doctor does
    assert look is not None and "SQL_ASCII" in str(look.refusal)


async def test_every_script_is_kept_whatever_encoding_clients_are_given(url: str):
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        await connection.execute(sql.SQL("ALTER DATABASE {} SET client_encoding TO 'LATIN1'").format(name))
    database = await PostgresDatabase.open(url, schema=None, pool_size=1)
    await database.execute(ADD(name="对话"))
    assert "对话" in await stored(database)
    await database.close()
