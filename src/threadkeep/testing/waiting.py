"""Waiting for a condition, never for a duration."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

PATIENCE_S = 60  # a busy machine must not fail a test


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Polls until a condition holds; TimeoutError after a minute."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            if await found if isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)
