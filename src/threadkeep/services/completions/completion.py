"""One reply outside any conversation, while it is made."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import msgspec

from threadkeep.clock import Clock
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationStart,
    Notice,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.payload import Lost, Payload
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_call import shown_refs
from threadkeep.domain.turn import Turn
from threadkeep.engine.loop import HandOff, Pause, Together, TurnStep
from threadkeep.engine.stop import Stop
from threadkeep.tasks import end_tasks

_PRELUDE = (TurnStart, IterationStart, Notice, UsageReported)
_LOST = Lost("It was not kept.")


class Contents:
    """What a conversation would have in the payload store, for as long as the reply is made."""

    def __init__(self, by_id: Mapping[PayloadId, bytes] | None = None) -> None:
        self.by_id = dict(by_id or {})

    async def keep(self, payload: Payload, content: bytes) -> None:
        """Keeps a tool's value or file."""
        self.by_id[payload.id] = content

    async def load(self, ids: Iterable[PayloadId]) -> Mapping[PayloadId, bytes | Lost]:
        """What is kept under these ids."""
        return {it: self.by_id.get(it, _LOST) for it in ids}


class Completion:
    """A reply that is made as long as somebody reads its events, within `async with`.

    Iterating yields them as they arrive, and an empty sequence when the reader is woken. Leaving ends it, and
    what it has used by then is charged.
    """

    def __init__(
        self,
        turn: Turn,
        steps: AsyncGenerator[TurnStep],
        stop: Stop,
        contents: Contents,
        clock: Clock,
        place: AbstractAsyncContextManager[None],
    ) -> None:
        """`steps` make the reply, until `stop`; `place` is held meanwhile."""
        self.turn = turn
        """As if it belonged to a conversation; it is not stored."""
        self.has_ended = False
        """Whether its last event is here. If not, and there are no more, this process is ending."""
        self.is_paused = False
        """Whether it waits for functions that the client runs, whose results come with another request."""
        self._stop = stop
        self._contents = contents
        self._clock = clock
        self._seq = 0
        self._unread: list[TurnEvent] = []
        self._news = asyncio.Event()
        self._steps, self._place = steps, place

    @cached_property
    def task(self) -> asyncio.Task[None]:
        """Makes the reply; begins when it is first asked for, at the latest with the reader."""
        return asyncio.create_task(self._run())

    def interrupt(self) -> None:
        """Ends it because this process is ending: its reader must not take it for complete."""
        self._stop.request("interrupt")

    async def __aenter__(self) -> Self:
        _ = self.task
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end_tasks(self.task)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[TurnEvent]:
        if not self._unread:
            if self.task.done():
                if not self.task.cancelled() and (failure := self.task.exception()):
                    raise failure  # our own: those of models and tools are events
                raise StopAsyncIteration
            await self._news.wait()
            self._news.clear()
        unread, self._unread = self._unread, []
        return unread

    async def begun(self) -> None:
        """Returns when there is something of the reply, or all; raises the error of one that never began."""
        while not self.task.done() and all(isinstance(it.body, _PRELUDE) for it in self._unread):
            await self._news.wait()
            self._news.clear()
        self._news.set()
        if self.task.done() and not self.task.cancelled() and (failure := self.task.exception()):
            raise failure

    async def cancel(self) -> None:
        """Ends it before anybody reads it; what it has used is charged."""
        await end_tasks(self.task)

    def wake(self) -> None:
        """Wakes the reader."""
        self._news.set()

    async def _run(self) -> None:
        try:
            self.add(TurnStart.of(self.turn))
            async with self._place, aclosing(self._steps) as steps:
                async for step in steps:
                    self._take(step)
        finally:
            asyncio.get_running_loop().call_soon(self._news.set)  # once the task is done

    def _take(self, step: TurnStep) -> None:
        match step:
            case Text() | Thought():  # nearly all
                self.add(step)
            case Done() | Failed():
                if self._stop.reason != "interrupt":
                    self.add(step)
                    self.has_ended = True
            case Together(entries):
                for entry in entries:
                    self._take(entry)
            case Pause():
                self.is_paused = True
            case ToolCalled() | ToolResultStored():
                self.add(self._whole(step))
            case ApprovalRequest(kind=ApprovalKind.CLIENT_TOOL):
                self.add(step)
            case ApprovalRequest() | ApprovalResponse() | TurnReceipt() | HandOff():
                pass  # nobody was asked
            case _:
                if isinstance(step, EventBody):  # not a journal entry, which only helps to resume
                    self.add(step)

    def add(self, body: EventBody) -> None:
        """Shows an event."""
        self._seq += 1
        self._show(TurnEvent(self.turn.id, self._seq, self._clock(), body))

    def _show(self, event: TurnEvent) -> None:
        self._unread.append(event)
        self._news.set()

    def _whole(self, body: ToolCalled | ToolResultStored) -> ToolCalled | ToolResultStored:
        """A call or result with its large values in place; no call waits for a user."""
        if isinstance(body, ToolCalled):
            body = replace(body, asks=False)
        if not body.refs:
            return body
        values: dict[str, Any] = {
            name: msgspec.json.decode(self._contents.by_id[ref])
            for name, ref in shown_refs(body.refs).items()
        }
        return replace(body, **values, refs={})
