"""Builds the adapters and hands them to the services; the only file that knows them all."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from threadkeep.domain.errors import StorageError
from threadkeep.http.app import Threadkeep
from threadkeep.http.auth import CurrentUser, sign_in
from threadkeep.http.cursors import Cursors
from threadkeep.http.services import Services
from threadkeep.ports.store import Store
from threadkeep.services import system_clock
from threadkeep.services.agents import Agents
from threadkeep.services.conversations import Conversations
from threadkeep.services.users import Users
from threadkeep.settings import Settings
from threadkeep.storage.store import open_store

log = logging.getLogger("threadkeep")

PURGE_EVERY_S = 3600


def create_app(settings: Settings | None = None, *, current_user: CurrentUser | None = None) -> Threadkeep:
    """Threadkeep as an ASGI app. `current_user(request)` lets a host application decide who asks."""
    settings = settings or Settings.load()
    door = sign_in(settings, current_user)
    runtime = Runtime(settings)

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        await runtime.services()
        try:
            yield
        finally:
            await runtime.close()
            await door.close()

    return Threadkeep(settings, door, runtime.services, running, embedded=current_user is not None)


def build_services(settings: Settings, store: Store) -> Services:
    """The use cases on a store."""
    agents = Agents(store, system_clock)
    return Services(
        agents=agents,
        conversations=Conversations(store, agents, system_clock, settings.zone),
        users=Users(store, system_clock),
        store=store,
        cursors=Cursors(store.key),
    )


class Runtime:
    """What runs while the app does. Starts on first use, for a host may not run our lifespan."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._services: Services | None = None
        self._starting = asyncio.Lock()
        self._purging: asyncio.Task[None] | None = None

    async def services(self) -> Services:
        """The services, started if need be."""
        if self._services is None:
            async with self._starting:
                if self._services is None:
                    self._services = await self._start()
        return self._services

    async def _start(self) -> Services:
        store = await open_store(
            self._settings.database,
            schema=self._settings.database_schema,
            pool_size=self._settings.database_pool_size,
        )
        services = build_services(self._settings, store)
        try:
            await services.agents.ensure_default()
        except BaseException:
            await store.close()
            raise
        self._purging = asyncio.create_task(self._purge_expired(services.conversations))
        return services

    async def _purge_expired(self, conversations: Conversations) -> None:
        while True:
            try:
                if purged := await conversations.purge_expired(self._settings.retention_days):
                    log.info("purged %d conversations that were deleted", purged)
            except StorageError as exc:
                log.warning("deleted conversations could not be purged: %s", exc.message)
            await asyncio.sleep(PURGE_EVERY_S)

    async def close(self) -> None:
        """Ends what runs and lets go of the database."""
        if self._purging is not None:
            self._purging.cancel()
            await asyncio.gather(self._purging, return_exceptions=True)
        if self._services is not None:
            await self._services.store.close()
        self._services = self._purging = None
