"""Hourly cleanup of expired data and of data that nothing refers to any more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from threadkeep.loops import Loops, SomeFailed, do_each
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep")

CLEAN_UP_EVERY_S = 3600
RETRY_AFTER_AT_MOST_S = 300.0
ORPHANED_S = 3600  # a younger file's row may still be on its way

Step = Callable[[], Awaitable[int | None]]


class Cleaning:
    """Runs its steps in order, even if some fail, and retries those.

    A step may return how many things it removed.
    """

    def __init__(self, steps: Mapping[str, Step], loops: Loops) -> None:
        self._steps = {f"cleanup of {name}": partial(_do, name, step) for name, step in steps.items()}
        self._due = self._steps
        self._loop = loops.start(
            "cleanup", self._run_due, self._until_next, longest_pause_s=RETRY_AFTER_AT_MOST_S
        )

    async def close(self) -> None:
        """Stops; the next run cleans up the rest."""
        await end_tasks(self._loop.task)

    async def _run_due(self) -> None:
        failed = await do_each(self._due)
        self._due = {name: self._steps[name] for name in failed} or self._steps
        if failed:
            raise SomeFailed

    async def _until_next(self) -> None:
        await asyncio.sleep(CLEAN_UP_EVERY_S)


async def _do(name: str, step: Step) -> None:
    if removed := await step():
        log.info("removed %d %s", removed, name)
