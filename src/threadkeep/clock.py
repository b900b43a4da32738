"""The clock that everything here uses."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds since 1970, UTC."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1_000_000
