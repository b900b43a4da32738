"""The clocks that everything here uses."""

import asyncio
import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds since 1970, UTC."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds by the running event loop, never set back: for what leases, pauses and timers measure.

    One clock for all of them, so that a loop with a time of its own moves them together.
    """
    return asyncio.get_running_loop().time()
