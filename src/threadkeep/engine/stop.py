"""Stops a turn from outside, at any moment, without losing its output so far."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

T = TypeVar("T")

StopReason = Literal["abort", "interrupt", "timeout", "expire", "hand_off"]


class TurnLost(Exception):
    """Another node has taken over the turn; this one must no longer write it, nor say how it ended."""


class Stopped(Exception):
    """The turn must end now."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class Stop:
    """Asks one turn to stop.

    A user may `abort` it or let a request `expire`; the process may `interrupt` it or `hand_off` to another.
    """

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.at_boundary = False
        """Whether to hand off the turn at the next boundary."""
        self._guarded: asyncio.Task[object] | None = None
        self._has_cancelled = False

    def request(self, reason: StopReason) -> None:
        """Stops the turn at the await it is in; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            # Not immediately: the guarded step itself may have made the request.
            asyncio.get_running_loop().call_soon(self._cancel)

    def check_boundary(self) -> None:
        """Called at a boundary: raises Stopped if the turn is to be handed off."""
        if self.at_boundary:
            raise Stopped("hand_off")

    def _cancel(self) -> None:
        if self._guarded is not None:
            self._has_cancelled = True
            self._guarded.cancel()

    async def guard(self, work: Callable[[], Awaitable[T]]) -> T:
        """Awaits a step of the turn; raises Stopped if the turn is stopped first."""
        if self.reason is not None:
            raise Stopped(self.reason)
        task = self._guarded = asyncio.current_task()
        assert task
        try:
            return await work()
        except asyncio.CancelledError:
            if self.reason is None or not self._has_cancelled or task.cancelling() > 1:
                raise  # somebody else cancelled the task
            raise Stopped(self.reason) from None
        finally:
            self._guarded = None
            if self._has_cancelled:
                task.uncancel()
