"""Ending tasks that run in the background, and finishing what a cancelled one has begun."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_ASK_AGAIN_S = 0.5
_giving_back: set[asyncio.Task[None]] = set()
"""The event loop alone would forget them."""


async def end_tasks(*tasks: "asyncio.Task[Any]") -> None:
    """Cancels tasks until they have ended.

    Once is not enough: `asyncio.wait_for` of Python 3.11, which database drivers use, loses a cancellation
    that arrives just when its awaitable is done.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=_ASK_AGAIN_S)


async def taken_whole(take: Coroutine[Any, Any, T], give_back: Callable[[], Awaitable[object]]) -> T:
    """What `take` returns. If the caller is cancelled before it knows, what was taken is given back."""
    taking = asyncio.create_task(take)
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        giving = asyncio.create_task(_give_back(taking, give_back))
        _giving_back.add(giving)
        giving.add_done_callback(_giving_back.discard)
        await asyncio.wait([giving])  # another cancellation ends the wait, and nothing else
        raise


async def _give_back(taking: "asyncio.Task[Any]", give_back: Callable[[], Awaitable[object]]) -> None:
    await asyncio.wait([taking])
    if not taking.cancelled() and taking.exception() is None:
        await give_back()
