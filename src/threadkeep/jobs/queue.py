"""Runs jobs in the background: a few at a time, retried when they fail, and surviving a crash."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import new_uuid
from threadkeep.loops import Loops, SomeFailed, do_each
from threadkeep.program_log import describe
from threadkeep.storage.jobs import Job, SqlJobs
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.jobs")


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What to do after a job, at once or after a delay."""

    kind: str
    arguments: Mapping[str, Any]
    delay_ms: int = 0


class RetryLater(Exception):
    """What a job needs is unavailable. The job is retried until that is back, and never given up."""


Handler = Callable[[Mapping[str, Any]], Awaitable[FollowUp | None]]

LOOK_EVERY_S = 5.0
LEASE_MS = 120_000
RENEW_EVERY_S = LEASE_MS / 1000 / 4
NO_LONGER: Mapping[str, float] = {}
MOST_RUNNING_OF_A_KIND = 4
"""How many jobs of one kind run at the same time; slow titles don't keep documents from being read."""
MOST_RUNNING_OF_A_USER = 2
"""How many of them are one user's, so that a thousand files leave room for others."""
MOST_ATTEMPTS = 5
FIRST_PAUSE_MS = 2_000
LONGEST_PAUSE_MS = 300_000


class _ClaimLost(Exception):
    """The job may be another node's by now."""


class Jobs:
    """Takes jobs from the store and passes them to their handlers.

    `longest_s` says how long a job of a kind may take, if that is longer than a lease.
    """

    def __init__(
        self,
        store: SqlJobs,
        handlers: Mapping[str, Handler],
        loops: Loops,
        longest_s: Mapping[str, float] = NO_LONGER,
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._longest_s = longest_s
        self._holder = new_uuid()
        self._wake = asyncio.Event()
        self._running: dict[str, dict[asyncio.Task[None], str]] = {kind: {} for kind in handlers}
        self._loop = loops.start("jobs", self._start_due, self._until_woken)

    async def add(self, kind: str, arguments: Mapping[str, Any], *, delay_ms: int = 0) -> None:
        """Adds a job, which runs once however often it is added before it starts."""
        await self._store.add(Job(new_uuid(), kind, arguments), delay_ms=delay_ms)
        self._wake.set()

    async def close(self) -> None:
        """Stops; running jobs start over, here at the next start or on another node."""
        await end_tasks(self._loop.task, *chain(*self._running.values()))
        try:
            await self._store.release(self._holder)
        except StorageError as exc:
            log.warning("couldn't release jobs; they stay claimed until their leases expire: %s", exc.message)

    async def _until_woken(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._wake.wait()

    async def _start_due(self) -> None:
        """Starts jobs that are due; of one kind even if another kind can't be read."""
        self._wake.clear()
        if await do_each(
            {f"reading {kind} jobs": partial(self._start_due_of, kind) for kind in self._running}
        ):
            raise SomeFailed

    async def _start_due_of(self, kind: str) -> None:
        while job := await self._take(kind):
            self._start(job)

    async def _take(self, kind: str) -> Job | None:
        """The next job of a kind, if there is room: one at a time, since each may use up its user's share."""
        running = self._running[kind]
        if len(running) >= MOST_RUNNING_OF_A_KIND:
            return None
        counts = Counter(user_id for user_id in running.values() if user_id)
        busy = [user_id for user_id, count in counts.items() if count >= MOST_RUNNING_OF_A_USER]
        jobs = await self._store.take(self._holder, kind, lease_ms=LEASE_MS, limit=1, not_for=busy)
        return jobs[0] if jobs else None

    def _start(self, job: Job) -> None:
        task, running = asyncio.create_task(self._do(job)), self._running[job.kind]
        running[task] = job.user_id

        def ended(task: "asyncio.Task[None]") -> None:
            running.pop(task, None)
            self._wake.set()
            if not task.cancelled() and (error := task.exception()):
                # It was neither postponed nor finished: it runs again when its lease expires.
                log.warning("job %s %s: %s", job.kind, job.id, describe(error))

        task.add_done_callback(ended)

    async def _do(self, job: Job) -> None:
        try:
            async with asyncio.timeout(self._longest_s.get(job.kind, LEASE_MS / 1000)):
                following = await self._handled(job)
            if following is not None:
                await self.add(following.kind, following.arguments, delay_ms=following.delay_ms)
        except _ClaimLost:
            _log_lost(job)
            return
        except Exception as exc:
            if isinstance(exc, RetryLater) or job.attempts < MOST_ATTEMPTS:
                log.warning("job %s %s failed, retrying: %s", job.kind, job.id, describe(exc))
                if not await self._store.postpone(job, delay_ms=pause_ms(job.attempts), error=repr(exc)):
                    _log_lost(job)
                return
            log.exception("giving up on job %s %s", job.kind, job.id)
        if not await self._store.finish(job):
            _log_lost(job)

    async def _handled(self, job: Job) -> FollowUp | None:
        """Runs a job's handler, and keeps the claim while it takes long."""
        doing = asyncio.ensure_future(self._handlers[job.kind](job.arguments))
        try:
            while not (await asyncio.wait([doing], timeout=RENEW_EVERY_S))[0]:
                with contextlib.suppress(StorageError):  # then the next one renews it, or it is lost
                    if not await self._store.renew(job, lease_ms=LEASE_MS):
                        raise _ClaimLost
            return doing.result()
        finally:
            await end_tasks(doing)


def _log_lost(job: Job) -> None:
    log.warning("job %s %s took so long that its claim ended; left it to the queue", job.kind, job.id)


def pause_ms(attempts: int) -> int:
    """How long to wait after this many attempts: longer each time, up to five minutes."""
    return min(FIRST_PAUSE_MS * 4 ** min(attempts - 1, 10), LONGEST_PAUSE_MS)
