"""PostgreSQL's connections, whatever becomes of those who use them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.conftest import ONLY_POSTGRES, TEMPLATE
from tests.pooling import NEEDS_PGBOUNCER, PgBouncer
from tests.postgres import Postgres
from threadkeep.domain.errors import SettingsError
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.database.migrate import Migration, migrations
from threadkeep.storage.store import open_database, open_snapshot, store_on
from threadkeep.testing.waiting import until

SLEEP = Statement("SELECT pg_sleep(100)")
SLEEPING = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query ~ 'pg_sleep' AND state <> 'idle'
        AND pid <> pg_backend_pid()"""


def _plan() -> Plan[None]:
    yield SLEEP()


USES: dict[str, Callable[[Database], Coroutine[Any, Any, object]]] = {
    "fetch": lambda database: database.fetch(SLEEP()),
    "read": lambda database: database.read(_plan),
    "execute": lambda database: database.execute(SLEEP()),
    "write": lambda database: database.write(_plan),
    "heavy": lambda database: database.write(_plan, heavy=True),
}


@ONLY_POSTGRES
@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_statement_ends_in_the_server_however_often_it_is_cancelled(
    database: Database, database_url: str, use: Callable[[Database], Coroutine[Any, Any, object]]
):
    def sleeping() -> int:
        with psycopg.connect(database_url) as connection:
            return connection.execute(SLEEPING).fetchall()[0][0]

    async def is_asleep() -> bool:
        return await asyncio.to_thread(sleeping) == 1

    task = asyncio.create_task(use(database))
    await until(is_asleep)
    while not task.done():  # as `end_tasks` does, and a timeout while somebody leaves
        task.cancel()
        await asyncio.sleep(0.001)
    assert task.cancelled()
    assert sleeping() == 0


@NEEDS_PGBOUNCER
async def test_behind_a_pooler_statements_need_no_session(postgres: Postgres):
    """Each transaction may run in another one, which other clients have used before."""
    url = postgres.create_database()
    with PgBouncer(url, pool_size=3) as pooler:
        database = await open_database(pooler.url, pool_size=4)
        await store_on(database)
        slow = Statement("SELECT 1", postgres="SELECT pg_backend_pid() FROM pg_sleep(0.01) WHERE :n > 0")
        found = await asyncio.gather(*(database.fetch(slow(n=1)) for _ in range(60)))
        assert len({row for rows in found for row in rows}) > 1
        await database.close()


@NEEDS_PGBOUNCER
async def test_schema_behind_a_pooler_must_be_the_roles_own(postgres: Postgres):
    """SET would hold for a session that the pooler gives to somebody else."""
    url = postgres.create_database()
    with PgBouncer(url) as pooler:
        with pytest.raises(
            SettingsError, match=r"ALTER ROLE postgres IN DATABASE tk_test_\w+ SET search_path"
        ):
            await open_database(pooler.url, schema="own")
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            name = sql.Identifier(urlsplit(url).path[1:])
            await connection.execute(
                sql.SQL("ALTER ROLE postgres IN DATABASE {} SET search_path TO own").format(name)
            )
        pooler.stop()
        pooler.start()
        await (await open_database(pooler.url, schema="own")).close()
        snapshot = await open_snapshot(pooler.url, schema="own")
        assert await snapshot.fetch(Statement("SELECT 1", postgres="SELECT current_schema()")()) == [("own",)]
        await snapshot.close()


async def test_migration_that_deadlocks_with_an_older_node_is_tried_again(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    url = postgres.create_database(template=TEMPLATE)
    monkeypatch.setattr("threadkeep.storage.database.postgres.MIGRATION_PAUSE_S", 0.01)
    # Locks one table after the other, as migrations of two tables do.
    locks = Statement("LOCK TABLE tk_users"), Statement("LOCK TABLE tk_turns")
    known = [*migrations("postgres"), Migration(9_999, "9999_locks", locks)]

    def with_one_more(dialect: str) -> list[Migration]:
        return known

    monkeypatch.setattr("threadkeep.storage.database.postgres.migrations", with_one_more)
    async with await psycopg.AsyncConnection.connect(url) as old:
        await old.execute("SET LOCAL deadlock_timeout = '1h'")  # the other one is ended
        await old.execute("LOCK TABLE tk_turns")
        opening = asyncio.create_task(open_database(url, pool_size=1))
        await until(lambda: waits_for_turns(url))
        await old.execute("LOCK TABLE tk_users")
        await old.commit()
    await (await opening).close()
    assert "retrying" in caplog.text


async def waits_for_turns(url: str) -> bool:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        found = await connection.execute(
            "SELECT FROM pg_locks WHERE NOT granted AND relation = 'tk_turns'::regclass"
        )
        return found.rowcount > 0
