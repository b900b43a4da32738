"""Background loops: work that goes on as long as the process does, whatever happens to one round of it.

Every long-lived task is started here. A round that fails is logged and counted, and the next one follows
after a pause, which grows while rounds keep failing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from threadkeep.domain.errors import StorageError

log = logging.getLogger("threadkeep.loops")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
KEEPS_FAILING = 3
"""After this many failures in a row, `/readyz` names the loop."""

Work = Callable[[], Awaitable[bool | None]]
"""One round; returns True if it was the last one."""
Step = Callable[[], Awaitable[object]]


class SomeFailed(Exception):
    """Parts of a round failed; they are already in the log."""


class Watch:
    """How one loop is doing. A thread may use it, too."""

    def __init__(self, name: str, failures: Counter[str]) -> None:
        self.name = name
        self._failures = failures
        self._in_a_row = 0

    @property
    def keeps_failing(self) -> bool:
        """Whether the latest rounds have all failed."""
        return self._in_a_row >= KEEPS_FAILING

    def pause_s(self, longest_s: float) -> float:
        """How long to wait before the next round: longer each time, up to a bound."""
        return min(FIRST_PAUSE_S * 2 ** min(self._in_a_row - 1, 20), longest_s)

    def succeeded(self) -> None:
        """The loop works."""
        self._in_a_row = 0

    def failed(self, error: BaseException) -> None:
        """A round failed."""
        self._in_a_row += 1
        self._failures[self.name] += 1
        if not isinstance(error, SomeFailed):
            _log_failure(self.name, error)


class Loops:
    """The background loops of one process."""

    def __init__(self) -> None:
        self.failures = Counter[str]()
        """How often each loop has failed so far."""
        self._watches: set[Watch] = set()

    @property
    def failing(self) -> list[str]:
        """The loops that keep failing."""
        return sorted({watch.name for watch in self._watches if watch.keeps_failing})

    def watch(self, name: str) -> Watch:
        """Counts the failures of a loop that isn't a task."""
        watch = Watch(name, self.failures)
        self.failures[name] += 0  # so that it is listed before it fails
        self._watches.add(watch)
        return watch

    def start(
        self,
        name: str,
        work: Work,
        wait: Callable[[], Awaitable[object]] | None = None,
        *,
        longest_pause_s: float = LONGEST_PAUSE_S,
    ) -> "Loop":
        """Repeats a round of work, and a wait after it, until the task is cancelled or the work is over."""
        watch = self.watch(name)
        loop = Loop(watch, work, wait, longest_pause_s)
        loop.task.add_done_callback(lambda _: self._watches.discard(watch))
        return loop


class Loop:
    """One running loop."""

    def __init__(
        self,
        watch: Watch,
        work: Work,
        wait: Callable[[], Awaitable[object]] | None,
        longest_pause_s: float,
    ) -> None:
        self._watch = watch
        self._work = work
        self._wait = wait
        self._longest_pause_s = longest_pause_s
        self.task = asyncio.create_task(self._run())

    def succeeded(self) -> None:
        """For a round that lasts: it works."""
        self._watch.succeeded()

    def failed(self, error: Exception) -> None:
        """For a round that goes on despite a failure."""
        self._watch.failed(error)

    async def _run(self) -> None:
        while not await self._has_ended_with_this_round():
            pass

    async def _has_ended_with_this_round(self) -> bool:
        try:
            if await self._work():
                return True
            self._watch.succeeded()
            await (self._wait or _let_others_run)()
        except asyncio.CancelledError as exc:
            if _is_being_cancelled():
                raise
            self._watch.failed(exc)  # something that the work waited for was cancelled, not the loop
        except Exception as exc:  # noqa: BLE001 - the round ends here, and it is logged
            self._watch.failed(exc)
        else:
            return False
        await asyncio.sleep(self._watch.pause_s(self._longest_pause_s))
        return False


async def _let_others_run() -> None:
    """The pause of work that has its own: work that never waits can't block the event loop."""
    await asyncio.sleep(0)


async def do_each(steps: Mapping[str, Step]) -> list[str]:
    """Runs all steps in order, even if some fail; logs and returns the names of those."""
    failed: list[str] = []
    for name, step in steps.items():
        try:
            await step()
        except Exception as exc:  # noqa: BLE001 - the step ends here, and it is logged
            _log_failure(name, exc)
            failed.append(name)
    return failed


def _log_failure(name: str, error: BaseException) -> None:
    if isinstance(error, StorageError):
        log.warning("%s failed: %s", name, error.message)
    else:
        log.error("%s failed", name, exc_info=error)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
