"""A few threads for functions that aren't `async`: daemons, so one that never returns keeps nothing alive."""

import asyncio
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.agent import Places

IDLE_S = 60.0


@dataclass(slots=True, eq=False)
class _Job:
    fn: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    returned: "asyncio.Future[Any]"
    owner: object

    def outcome(self) -> tuple[Any, BaseException | None]:
        """What the function returns or raises."""
        try:
            return self.fn(), None
        except (StopIteration, StopAsyncIteration) as exc:  # no future takes them
            error = RuntimeError(f"the function raised {type(exc).__name__}")
            error.__cause__ = exc
            return None, error
        except BaseException as exc:  # noqa: BLE001 - what waits for the function gets it
            return None, exc

    def deliver(self, value: Any, error: BaseException | None) -> None:
        """Passes it on to what waits."""
        try:
            self.loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:  # the loop is closed: nobody waits
            _close(value)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.returned.done():
            _close(value)
            return
        if error is None:
            self.returned.set_result(value)
        else:
            self.returned.set_exception(error)


def _close(value: Any) -> None:
    """Drops what a function returned: if that is a coroutine, nobody awaits it any more."""
    if inspect.iscoroutine(value):
        value.close()


class Threads:
    """Runs functions in threads, at most so many at once; others wait for their turn."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._count = 0
        self._idle = 0

    async def run(self, owner: object, fn: Callable[..., Any], *args: Any) -> Any:
        """What a function returns. If the caller is cancelled, the function goes on by itself."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        job = _Job(lambda: context.run(fn, *args), loop, loop.create_future(), owner)
        self._add(job)
        try:
            return await job.returned
        except asyncio.CancelledError:
            if job.returned.done() and not job.returned.cancelled() and job.returned.exception() is None:
                _close(job.returned.result())  # it came in the same moment
            raise
        finally:
            self._forget(job)

    @property
    def places(self) -> Places:
        """How full they are."""
        with self._changed:
            return Places(self._most, self._count - self._idle, len(self._jobs))

    def keeps_waiting(self, owner: object) -> bool:
        """Whether a function of this owner waits for a thread."""
        with self._changed:
            return any(job.owner is owner for job in self._jobs)

    def _add(self, job: _Job) -> None:
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
            elif self._count < self._most:
                self._count += 1
                self._idle += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._count}", daemon=True).start()

    def _forget(self, job: _Job) -> None:
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            outcome = job.outcome()
            with self._changed:
                self._idle += 1  # before anybody hears of it, and wants another thread
            job.deliver(*outcome)
            del job, outcome  # they may be large

    def _next(self) -> _Job | None:
        """The next function to run; None if there was nothing to do for a while."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._jobs, timeout=IDLE_S)
            self._idle -= 1
            if found:
                return self._jobs.popleft()
            self._count -= 1
            return None
