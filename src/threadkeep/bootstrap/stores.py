"""The store alone, for commands that need no server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from threadkeep.bootstrap.models import build_models
from threadkeep.bootstrap.servers import build_catalog
from threadkeep.bootstrap.storage import build_secret_box, open_migrated
from threadkeep.clock import system_clock
from threadkeep.services.agents import Agents
from threadkeep.services.model_choice import ModelChoice
from threadkeep.settings import Settings
from threadkeep.storage.database.beside import BesideServer
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.store import Store, open_snapshot, sqlite_path, store_on, store_reading


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
    """The store for a small write of a command, even while a server runs; makes the database if need be."""
    if settings.on_sqlite and (path := sqlite_path(settings.database)).exists():
        database = await BesideServer.open(path)
        try:
            yield await store_reading(database)
        finally:
            await database.close()
        return
    async with opened_jobs_and_store(settings) as (_, store):
        yield store


@asynccontextmanager
async def reading_store(settings: Settings) -> AsyncGenerator[Store]:
    """A snapshot of the store, for commands that only read; a server may be running."""
    database = await open_snapshot(settings.database, schema=settings.database_schema)
    try:
        yield await store_reading(database, build_secret_box(settings), settings.payload_folder)
    finally:
        await database.close()
