"""The store alone, for commands that need no server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from threadkeep.bootstrap.models import build_models
from threadkeep.bootstrap.servers import build_catalog
from threadkeep.bootstrap.storage import build_secret_box, open_migrated
from threadkeep.clock import system_clock
from threadkeep.domain.errors import StorageRefused
from threadkeep.services.agents import Agents
from threadkeep.services.model_choice import ModelChoice
from threadkeep.settings import Settings
from threadkeep.storage.database.beside import BesideServer
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.store import Store, open_snapshot, sqlite_path, store_on, store_reading


def check_has_database(settings: Settings) -> None:
    """Refuses settings with which no server has run: its database would be one that no server has."""
    if settings.on_sqlite and not (path := sqlite_path(settings.database)).is_file():
        raise StorageRefused(
            f"No database found in {path.parent.absolute()}: no server has run with this data folder. Start "
            "the server first, or name its data folder with --data. If the server has other settings, run "
            "this command with them."
        )


@asynccontextmanager
async def opened_jobs_and_store(settings: Settings) -> AsyncGenerator[tuple[SqlJobs, Store]]:
    """The store alone, for commands that write; refuses a data folder that a server uses."""
    database = await open_migrated(settings)
    try:
        store = await store_on(database, build_secret_box(settings), settings.payload_folder)
        choice = ModelChoice(build_models(settings), settings.allowed_models)
        await Agents(store, build_catalog(settings), system_clock, choice).ensure_default()
        yield SqlJobs(database), store
    finally:
        await database.close()


@asynccontextmanager
async def store_beside_server(settings: Settings) -> AsyncGenerator[Store]:
    """The store for a small write of a command, even while a server runs; makes no database."""
    check_has_database(settings)
    if not settings.on_sqlite:
        async with reading_store(settings):  # refuses a database that a server hasn't migrated
            pass
        async with opened_jobs_and_store(settings) as (_, store):
            yield store
        return
    database = await BesideServer.open(sqlite_path(settings.database))
    try:
        yield await store_reading(database)
    finally:
        await database.close()


@asynccontextmanager
async def reading_store(settings: Settings) -> AsyncGenerator[Store]:
    """A snapshot of the store, for commands that only read; a server may be running."""
    database = await open_snapshot(settings.database, schema=settings.database_schema)
    try:
        yield await store_reading(database, build_secret_box(settings), settings.payload_folder)
    finally:
        await database.close()
