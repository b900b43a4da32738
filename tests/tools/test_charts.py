"""The built-in tool that draws charts."""

from typing import Any

import pytest

from tests.making import ALICE, NOW, make_agent
from threadkeep.domain.chart import Chart, ChartKind, Series, read_chart
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.user import User
from threadkeep.ports.tools import Caller, Returned
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.tools.charts import MAKE_CHART, ChartServer

AGENT = make_agent()
CALLER = Caller(AGENT, User(ALICE), Conversation.start(ALICE, AGENT.id, NOW))
ROWS = [{"month": "一月", "sales": 3, "cost": 2.5}, {"month": "二月", "sales": 5, "cost": None}]


async def make(**arguments: Any) -> Returned:
    """What the tool gives; its arguments fit its own schema."""
    assert await SchemaChecker().problem(ALICE, MAKE_CHART.input_schema, arguments) is None
    (returned,) = [step async for step in ChartServer().call(CALLER, "make_chart", arguments)]
    assert isinstance(returned, Returned)
    return returned


async def test_any_agent_has_it_under_its_bare_name():
    server = ChartServer()
    (tool,) = await server.tools(CALLER)
    assert (server.name, tool.server, tool.name, tool.is_own) == ("charts", "charts", "make_chart", True)


async def test_rows_become_an_option():
    returned = await make(kind="bar", title="返工", rows=ROWS, x="month", y=["sales", "cost"])
    assert returned.status == "ok"
    assert returned.chart_data == {
        "tooltip": {},
        "legend": {"data": ["sales", "cost"]},
        "title": {"text": "返工"},
        "xAxis": {"type": "category", "name": "month", "data": ["一月", "二月"]},
        "yAxis": {"type": "value"},
        "series": [
            {"type": "bar", "name": "sales", "data": [3.0, 5.0]},
            {"type": "bar", "name": "cost", "data": [2.5, None]},
        ],
    }
    assert read_chart(returned.chart_data) == Chart(
        "返工",
        ("一月", "二月"),
        (
            Series(ChartKind.BAR, "sales", (3.0, 5.0)),
            Series(ChartKind.BAR, "cost", (2.5, None)),
        ),
    )


async def test_pie_and_scatter_are_read_back_as_they_were_made():
    pie = await make(kind="pie", rows=ROWS, x="month", y=["sales"])
    assert read_chart(pie.chart_data) == Chart(
        "", ("一月", "二月"), (Series(ChartKind.PIE, "sales", (3.0, 5.0)),)
    )
    scatter = await make(kind="scatter", rows=ROWS, x="sales", y=["cost"])
    assert read_chart(scatter.chart_data) == Chart(
        "", ("1", "2"), (Series(ChartKind.SCATTER, "cost", (2.5, None), (3.0, 5.0)),)
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"kind": "bar", "rows": ROWS, "x": "year", "y": ["sales"]}, "No row has a column 'year'"),
        ({"kind": "line", "rows": ROWS, "x": "sales", "y": ["month"]}, "Column 'month' must contain numbers"),
        (
            {"kind": "scatter", "rows": ROWS, "x": "month", "y": ["sales"]},
            "Column 'month' must contain numbers",
        ),
        ({"kind": "bar", "rows": [{"a": True, "b": True}], "x": "a", "y": ["b"]}, "must contain numbers"),
    ],
)
async def test_what_cannot_be_drawn_is_told(arguments: dict[str, Any], says: str):
    returned = await make(**arguments)
    assert returned.status == "error"
    assert says in (returned.error or "")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kind": "radar", "rows": ROWS, "x": "month", "y": ["sales"]},
        {"kind": "bar", "rows": [], "x": "month", "y": ["sales"]},
        {"kind": "bar", "rows": [{"a": 1}] * 1001, "x": "a", "y": ["a"]},
        {"kind": "bar", "rows": ROWS, "x": "month", "y": []},
    ],
)
async def test_what_does_not_fit_the_schema_does_not_get_that_far(arguments: dict[str, Any]):
    assert await SchemaChecker().problem(ALICE, MAKE_CHART.input_schema, arguments) is not None
