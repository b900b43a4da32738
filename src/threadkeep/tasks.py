"""Ending tasks that run in the background."""

import asyncio
from typing import Any

_ASK_AGAIN_S = 0.5


async def end_tasks(*tasks: "asyncio.Task[Any]") -> None:
    """Cancels tasks until they have ended.

    Once is not enough: `asyncio.wait_for` of Python 3.11, which database drivers use, loses a cancellation
    that arrives just when its awaitable is done.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=_ASK_AGAIN_S)
