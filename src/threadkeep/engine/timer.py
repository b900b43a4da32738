"""A turn's remaining time: its clock pauses while it waits for its user."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager


class TurnTimer:
    """Calls `on_end` once the turn has run for `limit_s`, including `used_s` so far; 0 means no limit."""

    def __init__(self, limit_s: float, used_s: float, on_end: Callable[[], None]) -> None:
        self._left_s = max(limit_s - used_s, 0) if limit_s else None
        self._on_end = on_end
        self._waiting = 0
        self._started_at = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._start()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pauses the clock inside the block; blocks can overlap."""
        self._waiting += 1
        if self._waiting == 1:
            self._halt()
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._start()

    def stop(self) -> None:
        """Stops the clock for good, even if a pause ends after it."""
        self._halt()
        self._left_s = None

    def _halt(self) -> None:
        if self._handle is not None and self._left_s is not None:
            self._handle.cancel()
            self._handle = None
            self._left_s = max(self._left_s - (asyncio.get_running_loop().time() - self._started_at), 0)

    def _start(self) -> None:
        if self._left_s is not None:
            loop = asyncio.get_running_loop()
            self._started_at = loop.time()
            self._handle = loop.call_later(self._left_s, self._on_end)
