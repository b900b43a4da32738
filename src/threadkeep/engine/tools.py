"""Runs the tools that a model asks for; each call ends in exactly one result."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.events import Retrieval, ToolCalled, ToolProgress, ToolResulted
from threadkeep.domain.text import storable
from threadkeep.ports.gateway import ToolSpec, ToolUse
from threadkeep.ports.tools import Outcome, Progress, Tool, ToolSession, Unavailable

log = logging.getLogger("threadkeep.engine")

ToolEvent = ToolProgress | Retrieval | ToolResulted


class Toolbox:
    """The tools of one turn, by name."""

    def __init__(self, session: ToolSession | None) -> None:
        self._session = session
        self._tools: Mapping[str, Tool] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return tuple(
            ToolSpec(name, tool.description, tool.input_schema) for name, tool in self._tools.items()
        )

    async def open(self) -> Sequence[Unavailable]:
        """Finds out what can be used; tells what is away."""
        if self._session is None:
            return ()
        tools, away = await self._session.list()
        self._tools = {tool.name: tool for tool in tools}
        return away

    def called(self, use: ToolUse) -> ToolCalled:
        """The event of a call that is about to be made."""
        tool = self._tools.get(use.name)
        return ToolCalled(use.id, use.name, tool.server if tool else "", clean(use.arguments))

    async def run(self, uses: Sequence[ToolUse]) -> AsyncGenerator[ToolEvent]:
        """Runs calls at the same time; gives their events as they come."""
        events: asyncio.Queue[ToolEvent] = asyncio.Queue()
        tasks = [asyncio.create_task(self._run_one(use, events)) for use in uses]
        missing = len(tasks)
        try:
            while missing:
                event = await events.get()
                missing -= isinstance(event, ToolResulted)
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_one(self, use: ToolUse, events: "asyncio.Queue[ToolEvent]") -> None:
        begun = time.monotonic()
        outcome = Outcome("error", error=f"There is no tool named {use.name!r}.")
        tool = self._tools.get(use.name)
        if use.problem is not None:
            outcome = Outcome("error", error=use.problem)
        elif tool is not None:
            outcome = await self._outcome(tool, use, events)
        if outcome.hits:
            events.put_nowait(Retrieval(storable(outcome.query), outcome.hits, use.id))
        events.put_nowait(
            ToolResulted(
                use.id,
                use.name,
                outcome.status,
                clean(outcome.result),
                None if outcome.error is None else storable(outcome.error),
                int((time.monotonic() - begun) * 1000),
                clean(outcome.chart_data),
            )
        )

    async def _outcome(self, tool: Tool, use: ToolUse, events: "asyncio.Queue[ToolEvent]") -> Outcome:
        assert self._session is not None
        steps, limit = self._session.call(tool, use.arguments), asyncio.timeout(tool.timeout_s or None)
        try:
            async with limit:
                async for step in steps:
                    if isinstance(step, Outcome):
                        return step
                    events.put_nowait(_progress(use, step))
            return Outcome("error", error="The tool ended without a result.")
        except Exception as exc:
            if limit.expired():
                return Outcome("timeout", error=f"The tool took longer than {tool.timeout_s:g} seconds.")
            log.exception("tool %s failed", use.name)
            return Outcome("error", error=f"The tool failed: {type(exc).__name__}.")
        finally:
            await steps.aclose()


def _progress(use: ToolUse, step: Progress) -> ToolProgress:
    message = None if step.message is None else storable(step.message)
    progress = step.progress if math.isfinite(step.progress) else 0.0
    total = step.total if step.total is not None and math.isfinite(step.total) else None
    return ToolProgress(use.id, progress, total, message)


def clean(value: Any) -> Any:
    """A JSON value with everything replaced that no database keeps."""
    match value:
        case None | bool():
            return value
        case str():
            return storable(value)
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value if abs(value) < 2**63 else str(value)
        case Mapping():
            return {storable(str(key)): clean(item) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case list() | tuple():
            return [clean(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return storable(str(value))
