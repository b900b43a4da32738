"""What every test can ask for: a real database of each kind, empty and its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres, open_postgres
from threadkeep.ports.store import Store
from threadkeep.storage.database import Database
from threadkeep.storage.store import open_database, store_on

pytest_plugins = ["tests.conformance.plugin"]

TEMPLATE = "tk_test_template"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL with one migrated database, of which each test gets a copy."""
    server = open_postgres()
    server.drop_database(TEMPLATE)
    asyncio.run(_migrate(server.create_database(TEMPLATE)))
    yield server
    server.close()


async def _migrate(url: str) -> None:
    await (await open_database(url, pool_size=1)).close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/data/threadkeep.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database(template=TEMPLATE)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database."""
    database = await open_database(database_url, pool_size=4)
    yield database
    await database.close()


@pytest.fixture
async def store(database: Database) -> Store:
    """The store on an open database."""
    return await store_on(database)
