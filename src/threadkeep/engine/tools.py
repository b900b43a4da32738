"""Runs the tools that a model asks for; each call ends in exactly one result."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from threadkeep.domain.events import Notice, Retrieval, ToolCalled, ToolProgress, ToolResulted
from threadkeep.domain.text import storable
from threadkeep.engine.arguments import problem_with
from threadkeep.engine.tool_names import tools_by_name
from threadkeep.engine.values import TooDeep, clean
from threadkeep.ports.gateway import ToolSpec, ToolUse
from threadkeep.ports.tools import Outcome, Progress, Tool, ToolSession

log = logging.getLogger("threadkeep.engine")

MOST_TOOLS = 128
"""As many as every provider takes."""

ToolEvent = ToolProgress | Retrieval | ToolResulted


class Toolbox:
    """The tools of one turn, by the names that the model knows them by."""

    def __init__(self, session: ToolSession | None) -> None:
        self._session = session
        self._tools: Mapping[str, Tool] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return tuple(
            ToolSpec(name, tool.description, tool.input_schema) for name, tool in self._tools.items()
        )

    async def open(self) -> Sequence[Notice]:
        """Finds out what can be used; tells what cannot."""
        if self._session is None:
            return ()
        tools, away = await self._session.list()
        named = tools_by_name(tools)
        self._tools = dict(islice(named.items(), MOST_TOOLS))
        notices = [Notice("MCP_SERVER_UNAVAILABLE", f"{it.server} is away: {it.message}") for it in away]
        if left_out := len(named) - len(self._tools):
            notices.append(
                Notice("TOO_MANY_TOOLS", f"A model takes {MOST_TOOLS} tools; {left_out} are left out.")
            )
        return notices

    def called(self, use: ToolUse) -> ToolCalled:
        """The event of a call that is about to be made. Records have the names that the server knows."""
        tool = self._tools.get(use.name)
        if tool is None:
            return ToolCalled(use.id, use.name, "", use.arguments)
        return ToolCalled(use.id, tool.name, tool.server, use.arguments)

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
        tool = self._tools.get(use.name)
        outcome = _clean(await self._outcome(tool, use, events))
        if outcome.hits:
            events.put_nowait(Retrieval(storable(outcome.query), outcome.hits, use.id))
        events.put_nowait(
            ToolResulted(
                use.id,
                tool.name if tool else use.name,
                outcome.status,
                outcome.result,
                None if outcome.error is None else storable(outcome.error),
                int((time.monotonic() - begun) * 1000),
                outcome.chart_data,
            )
        )

    async def _outcome(self, tool: Tool | None, use: ToolUse, events: "asyncio.Queue[ToolEvent]") -> Outcome:
        if use.problem is not None:
            return Outcome("error", error=use.problem)
        if tool is None:
            return Outcome("error", error=f"There is no tool named {use.name!r}.")
        if problem := problem_with(tool, use.arguments):
            return Outcome("error", error=problem)
        return await self._call(tool, use, events)

    async def _call(self, tool: Tool, use: ToolUse, events: "asyncio.Queue[ToolEvent]") -> Outcome:
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
            log.exception("tool %s of %s failed", tool.name, tool.server)
            return Outcome("error", error=f"The tool failed: {type(exc).__name__}.")
        finally:
            await steps.aclose()


def clean_use(use: ToolUse) -> ToolUse:
    """A call with arguments that can be kept and sent back; where there is no way, that is its problem."""
    try:
        arguments: dict[str, Any] = clean(use.arguments)
    except TooDeep:
        return replace(use, arguments={}, problem="The arguments are nested too deeply.")
    return replace(use, name=storable(use.name), arguments=arguments)


def _clean(outcome: Outcome) -> Outcome:
    try:
        return replace(outcome, result=clean(outcome.result), chart_data=clean(outcome.chart_data))
    except TooDeep:
        return Outcome("error", error="The tool's result is nested too deeply.")


def _progress(use: ToolUse, step: Progress) -> ToolProgress:
    message = None if step.message is None else storable(step.message)
    progress = step.progress if math.isfinite(step.progress) else 0.0
    total = step.total if step.total is not None and math.isfinite(step.total) else None
    return ToolProgress(use.id, progress, total, message)
