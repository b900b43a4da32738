"""The way of a turn's output from what runs at the same time to its one log."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from threadkeep.engine.loop import TurnStep


@dataclass(frozen=True, slots=True)
class Alone:
    """Work that writes to the log itself: nothing else is written meanwhile."""

    work: Callable[[], Awaitable[None]]


class Outlet:
    """Passes steps on in the order in which they come."""

    def __init__(self) -> None:
        self._steps: asyncio.Queue[tuple[TurnStep | Alone | BaseException, asyncio.Future[None] | None]]
        self._steps = asyncio.Queue()

    def emit(self, step: TurnStep | Alone) -> None:
        """Passes a step on; nobody waits for it."""
        self._steps.put_nowait((step, None))

    async def store(self, step: TurnStep | Alone) -> None:
        """Passes a step on; returns when it is written, or stored if something takes effect after it."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._steps.put_nowait((step, written))
        await written

    def fail(self, exc: BaseException) -> None:
        """Ends the turn with an error, after what was passed on before."""
        self._steps.put_nowait((exc, None))

    async def take(self) -> tuple[TurnStep | Alone, "asyncio.Future[None] | None"]:
        """The next step, and who waits for it."""
        step, written = await self._steps.get()
        if isinstance(step, BaseException):
            raise step
        return step, written

    def left_over(self) -> Iterator[TurnStep]:
        """What was on its way when the turn stopped. What somebody waited for has not taken effect."""
        while not self._steps.empty():
            step, written = self._steps.get_nowait()
            if written is None and not isinstance(step, Alone | BaseException):
                yield step
