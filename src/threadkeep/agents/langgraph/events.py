"""What nodes and tools write for the user with `get_stream_writer()`, shown once."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agents.langgraph.bridge import wait_for
from threadkeep.agents.langgraph.graph_run import GraphRun, running
from threadkeep.agents.turn import in_step
from threadkeep.agents.values import Unstorable, class_of, content_hash, encode

RUNTIME = "__pregel_runtime"
"""Where LangGraph looks for what its graphs run with."""

_in_tool: ContextVar["set[asyncio.Task[Any]] | None"] = ContextVar("events_in_tool", default=None)


@dataclass(kw_only=True, slots=True, frozen=True)  # pyright: ignore[reportGeneralTypeIssues]
class EventsRuntime(Runtime[Any]):
    """Lets nodes write to the turn, instead of to the stream of the graph, which is read too late."""

    def merge(self, other: Runtime[Any]) -> Runtime[Any]:
        """The runtime of a graph, which still writes to the turn."""
        merged = Runtime.merge(self, other)
        values: dict[str, Any] = {it.name: getattr(merged, it.name) for it in fields(merged)}
        values["stream_writer"] = self.stream_writer
        return EventsRuntime(**values)


class Events:
    """Shows what is written: in a node as a step of its own, in a tool as part of the tool's."""

    def __init__(self, run: GraphRun, show: Callable[[Any], Coroutine[Any, Any, object]]) -> None:
        self._run = run
        self._show = show

    def write(self, event: Any) -> None:
        """Shows an event, before what its node does is saved."""
        if in_step():
            self._write_in_step(event)
        elif running() is self._run:
            try:
                identity = content_hash(encode(event))
            except Unstorable:
                identity = class_of(event)

            async def shown() -> None:
                await self._show(event)

            self._run.record_aside("event", identity, shown)

    def _write_in_step(self, event: Any) -> None:
        written = _in_tool.get()
        if not self._run.turn.function_run.is_on_its_loop:
            wait_for(self._show(event), self._run.loop)
        elif written is not None:
            written.add(asyncio.create_task(self._show(event)))


async def until_shown(call: Coroutine[Any, Any, Any]) -> Any:
    """What a tool returns, once what it has written is shown."""
    written: set[asyncio.Task[Any]] = set()
    mark = _in_tool.set(written)
    try:
        return await call
    finally:
        _in_tool.reset(mark)
        await asyncio.gather(*written)
