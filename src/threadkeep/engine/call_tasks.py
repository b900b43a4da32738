"""The tasks that run a batch's calls, and one queue of their events."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.events import ApprovalRequest, ApprovalResponse
from threadkeep.engine.call_state import Call
from threadkeep.engine.tools import ToolEvent
from threadkeep.ports.tools import InputRequired


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """A call returned because its server needs input from the user."""

    call: Call
    required: InputRequired


@dataclass(frozen=True, slots=True)
class Wake:
    """The user may have decided, or nothing else can happen."""


CallEvent = ToolEvent | ApprovalRequest | ApprovalResponse | InputNeeded


class CallTasks:
    """Runs calls at the same time, and hands on their events one by one."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[CallEvent | Wake | BaseException] = asyncio.Queue()
        self._running: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether there is an event, or may be one without the user."""
        return bool(self._running) or not self._events.empty()

    def emit(self, event: CallEvent | Wake) -> None:
        """Adds an event."""
        self._events.put_nowait(event)

    async def next(self) -> CallEvent | Wake:
        """The next event; Wake if only the user can continue a call."""
        event = await self._events.get() if self.is_busy else Wake()
        if isinstance(event, BaseException):
            raise event  # our own failure; a tool's would be a result
        return event

    async def woken(self) -> None:
        """Returns when there is an event again."""
        self._events.put_nowait(await self._events.get())

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a call, or a part of it."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def listen(self, arrived: Callable[[], Awaitable[None]]) -> None:
        """From now on, emits Wake whenever the user may have decided."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(arrived))

    async def cancel(self) -> None:
        """Ends all tasks."""
        tasks = [*self._running, *([self._listening] if self._listening else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, arrived: Callable[[], Awaitable[None]]) -> None:
        while True:
            await arrived()
            self.emit(Wake())

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (exc := task.exception()):
            self._events.put_nowait(exc)
        elif not self._running:  # otherwise `next` would wait for ever
            self.emit(Wake())
