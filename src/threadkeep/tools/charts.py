"""A small built-in server: any agent can draw a chart."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.chart import MOST_POINTS, MOST_SERIES, ChartKind, chart_option
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.mcp import CHARTS
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Caller, Progress, Returned, Tool

MAKE_CHART = Tool(
    CHARTS,
    "make_chart",
    "Draw a chart of rows of data; the user sees it below your answer. Say in words what it shows, too.",
    {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": [kind.value for kind in ChartKind]},
            "title": {"type": "string", "maxLength": 100},
            "rows": {
                "type": "array",
                "description": 'The data, one object a row, such as {"month": "May", "sales": 12}.',
                "items": {"type": "object"},
                "minItems": 1,
                "maxItems": MOST_POINTS,
            },
            "x": {"type": "string", "description": "The column of labels, or of numbers for `scatter`."},
            "y": {
                "type": "array",
                "description": "The columns of numbers; `pie` draws the first.",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_SERIES,
            },
        },
        "required": ["kind", "rows", "x", "y"],
    },
    timeout_s=10,
    is_own=True,
    effect=ToolEffect.READ,
)


class ChartServer:
    """Makes charts."""

    @property
    def name(self) -> str:
        """The server's name in records."""
        return CHARTS

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return (MAKE_CHART,)

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """The same for everyone."""
        return (MAKE_CHART,)

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Makes a chart, or reports why it can't be drawn. The arguments match the schema."""
        try:
            option = chart_option(
                ChartKind(arguments["kind"]),
                arguments["rows"],
                arguments["x"],
                arguments["y"],
                arguments.get("title", ""),
            )
        except InvalidRequest as exc:
            yield Returned("error", error=exc.message)
            return
        yield Returned("ok", f"The chart is drawn: {len(arguments['rows'])} rows.", chart_data=option)
