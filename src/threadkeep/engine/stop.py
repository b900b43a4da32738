"""Stopping a turn from outside, at any moment, without losing what has arrived."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

T = TypeVar("T")

StopReason = Literal["abort", "interrupt", "timeout"]


class Stopped(Exception):
    """The turn is to end now."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class Stop:
    """Asks one turn to stop: a user's `abort`, the process's `interrupt`, or its own deadline."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self._scope: asyncio.Timeout | None = None

    def request(self, reason: StopReason) -> None:
        """Stops the turn at the await it is in; the first reason counts."""
        self.reason = self.reason or reason
        # One that is expiring already takes the turn to its end; it cannot be hurried further.
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def guard(self, work: Callable[[], Awaitable[T]], deadline: float | None) -> T:
        """Awaits a step of the turn, unless it is to stop first; then raises Stopped."""
        if self.reason is not None:
            raise Stopped(self.reason)
        scope = asyncio.timeout_at(deadline)
        try:
            async with scope:
                self._scope = scope
                try:
                    return await work()
                finally:
                    self._scope = None
        except TimeoutError:
            if not scope.expired():
                raise  # the work's own
            self.reason = self.reason or "timeout"
            raise Stopped(self.reason) from None
