"""Between a graph's functions that aren't `async`, in their threads, and the agents' loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(call: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """What a call on the loop comes to; its thread waits for it."""
    return asyncio.run_coroutine_threadsafe(call, loop).result()
