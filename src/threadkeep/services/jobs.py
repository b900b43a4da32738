"""Does jobs in the background: one after the other, tried again when they fail, not forgotten in a crash."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import new_uuid
from threadkeep.ports.jobs import Job, JobStore
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.jobs")

Handler = Callable[[Mapping[str, Any]], Awaitable[None]]

LOOK_EVERY_S = 5.0
LEASE_MS = 120_000
MOST_ATTEMPTS = 5
FIRST_PAUSE_MS = 2_000


class Jobs:
    """Takes jobs from the store and hands them to those who know how."""

    def __init__(self, store: JobStore, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._handlers = handlers
        self._holder = new_uuid()
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def add(self, kind: str, arguments: Mapping[str, Any]) -> None:
        """Has something done soon."""
        await self._store.add(Job(new_uuid(), kind, arguments))
        self._wake.set()

    async def close(self) -> None:
        """Stops; a job that is under way is done again, here at the next start or by another node."""
        await end_tasks(self._task)
        try:
            await self._store.release(self._holder)
        except StorageError as exc:
            log.warning("jobs stay taken until their leases run out: %s", exc.message)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                while jobs := await self._store.take(self._holder, lease_ms=LEASE_MS, limit=4):
                    for job in jobs:
                        await self._do(job)
            except StorageError as exc:
                log.warning("jobs cannot be read: %s", exc.message)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()

    async def _do(self, job: Job) -> None:
        try:
            async with asyncio.timeout(LEASE_MS / 1000):
                await self._handlers[job.kind](job.arguments)
        except Exception as exc:
            if job.attempts < MOST_ATTEMPTS:
                log.warning("job %s %s failed and is tried again: %r", job.kind, job.id, exc)
                pause = FIRST_PAUSE_MS * 4 ** (job.attempts - 1)
                await self._store.postpone(job, delay_ms=pause, error=repr(exc))
                return
            log.exception("job %s %s is given up", job.kind, job.id)
        await self._store.finish(job)
