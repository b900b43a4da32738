"""Does jobs in the background: a few at a time, tried again when they fail, not forgotten in a crash."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import new_uuid
from threadkeep.ports.jobs import Job, JobStore
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.jobs")


@dataclass(frozen=True, slots=True)
class Next:
    """What is to be done after a job."""

    kind: str
    arguments: Mapping[str, Any]


Handler = Callable[[Mapping[str, Any]], Awaitable[Next | None]]

LOOK_EVERY_S = 5.0
LEASE_MS = 120_000
MOST_AT_ONCE = 4
MOST_ATTEMPTS = 5
FIRST_PAUSE_MS = 2_000


class Jobs:
    """Takes jobs from the store and hands them to those who know how."""

    def __init__(self, store: JobStore, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._handlers = handlers
        self._holder = new_uuid()
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run())

    async def add(self, kind: str, arguments: Mapping[str, Any]) -> None:
        """Has something done soon."""
        await self._store.add(Job(new_uuid(), kind, arguments))
        self._wake.set()

    async def close(self) -> None:
        """Stops; a job that is under way is done again, here at the next start or by another node."""
        await end_tasks(self._task, *self._running)
        try:
            await self._store.release(self._holder)
        except StorageError as exc:
            log.warning("jobs stay taken until their leases run out: %s", exc.message)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                while (free := MOST_AT_ONCE - len(self._running)) and (
                    jobs := await self._store.take(self._holder, lease_ms=LEASE_MS, limit=free)
                ):
                    for job in jobs:
                        self._start(job)
            except StorageError as exc:
                log.warning("jobs cannot be read: %s", exc.message)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._do(job))
        self._running.add(task)

        def ended(task: "asyncio.Task[None]") -> None:
            self._running.discard(task)
            self._wake.set()
            if not task.cancelled() and (error := task.exception()):
                # It could not be put back or forgotten: it is done again when its lease runs out.
                log.warning("job %s %s: %r", job.kind, job.id, error)

        task.add_done_callback(ended)

    async def _do(self, job: Job) -> None:
        try:
            async with asyncio.timeout(LEASE_MS / 1000):
                following = await self._handlers[job.kind](job.arguments)
            if following is not None:
                await self.add(following.kind, following.arguments)
        except Exception as exc:
            if job.attempts < MOST_ATTEMPTS:
                log.warning("job %s %s failed and is tried again: %r", job.kind, job.id, exc)
                pause = FIRST_PAUSE_MS * 4 ** (job.attempts - 1)
                await self._store.postpone(job, delay_ms=pause, error=repr(exc))
                return
            log.exception("job %s %s is given up", job.kind, job.id)
        await self._store.finish(job)
