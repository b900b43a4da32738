"""PostgreSQL's connections, whatever becomes of those who use them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from tests.conftest import ONLY_POSTGRES
from threadkeep.storage.database.connector import Database, Plan, Statement
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
