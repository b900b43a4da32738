"""The Guide's tools: made-up numbers and a handbook, a report that goes nowhere, a server that stops."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.chart import ChartKind, chart_option
from threadkeep.domain.guide import GUIDE_MODEL
from threadkeep.domain.ids import TurnId
from threadkeep.domain.mcp import GUIDE
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Caller, Progress, Returned, Tool

UNPLUG_AFTER_S = 1.5
GONE_S = 2.5
"""Long enough to see that nothing happens."""
STEP_S = 0.4

_ROWS = [
    {"month": month, "sales": sales}
    for month, sales in zip(("Jan", "Feb", "Mar", "Apr", "May", "Jun"), (12, 15, 21, 18, 26, 31), strict=True)
]
_HANDBOOK = (
    RetrievalHit(
        source="handbook.md",
        text="Every part of an answer is stored before anybody sees it. What you have seen is never lost.",
        score=0.91,
        chunk_id="guide-handbook-1",
        page=1,
    ),
    RetrievalHit(
        source="handbook.md",
        text="When a server stops, its turns wait. The next server continues each of them from its log.",
        score=0.84,
        chunk_id="guide-handbook-2",
        page=2,
    ),
)


def _tool(name: str, description: str, effect: ToolEffect, *parameters: str) -> Tool:
    properties = {it: {"type": "string"} for it in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return Tool(GUIDE, name, description, schema, timeout_s=30.0, is_own=True, effect=effect)


TOOLS = (
    _tool("look_up_sales", "Sales by month.", ToolEffect.READ, "from", "to"),
    _tool("search_handbook", "Searches the handbook.", ToolEffect.READ, "query"),
    _tool("send_report", "Sends a report by mail.", ToolEffect.WRITE, "to", "subject"),
    _tool("unplug_server", "Has this server lose the turn in a moment.", ToolEffect.READ),
)


class GuideServer:
    """What the Guide can do; `lose` makes this process lose a turn for some seconds, as in a crash."""

    name = GUIDE

    def __init__(self, lose: Callable[[TurnId, float], object]) -> None:
        self._lose = lose

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """For the Guide only."""
        return TOOLS if agent.model == GUIDE_MODEL else ()

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """All of them."""
        return self.offers(caller.agent)

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Runs a tool, at a pace that can be watched."""
        for step in (1, 2):
            yield Progress(step, 2)
            await asyncio.sleep(STEP_S)
        match name:
            case "look_up_sales":
                chart = chart_option(ChartKind.LINE, _ROWS, "month", ["sales"], "Sales")
                yield Returned("ok", {"rows": _ROWS}, chart_data=chart)
            case "search_handbook":
                yield Returned("ok", query=str(arguments.get("query", "")), hits=_HANDBOOK)
            case "send_report":
                yield Returned("ok", {"sent": True, **arguments})
            case "unplug_server":
                turn_id = TurnId(caller.call_key.partition(":")[0])
                asyncio.get_running_loop().call_later(UNPLUG_AFTER_S, self._lose, turn_id, GONE_S)
                yield Returned("ok", "The server stops in a moment.")
            case _:
                yield Returned("error", error=f"Tool {name!r} not found.")
