"""Hourly cleanup of expired data and of data that nothing refers to any more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from threadkeep.domain.errors import StorageError
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep")

CLEAN_UP_EVERY_S = 3600
ORPHANED_S = 3600  # a younger file's row may still be on its way

Step = Callable[[], Awaitable[int | None]]


class Cleaning:
    """Runs its steps in order, even if some fail; a step may return how many things it removed."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stops; the next run cleans up the rest."""
        await end_tasks(self._running)

    async def _run(self) -> None:
        while True:
            for name, step in self._steps.items():
                await _do(name, step)
            await asyncio.sleep(CLEAN_UP_EVERY_S)


async def _do(name: str, step: Step) -> None:
    try:
        if removed := await step():
            log.info("removed %d %s", removed, name)
    except StorageError as exc:
        log.warning("cleanup of %s failed: %s", name, exc.message)
    except Exception:
        log.exception("cleanup of %s failed", name)
