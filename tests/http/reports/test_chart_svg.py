"""Charts are drawn as SVG: well-formed, without script, whatever a tool calls a chart."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.chart import read_chart
from threadkeep.http.reports.chart_svg import COLOURS, draw

ROWS = [{"m": "<b>", "n": 3, "k": -1}, {"m": "二月", "n": 5, "k": None}]


def drawn(value: object) -> ET.Element:
    chart = read_chart(value)
    assert chart
    return ET.fromstring(draw(chart))


def count(svg: ET.Element, tag: str) -> int:
    return len(svg.findall(f".//{{http://www.w3.org/2000/svg}}{tag}"))


@pytest.mark.parametrize(
    ("kind", "tag", "times"), [("bar", "rect", 3 + 2), ("line", "polyline", 2), ("pie", "path", 2)]
)
def test_rows_with_a_kind_are_drawn(kind: str, tag: str, times: int):
    svg = drawn({"kind": kind, "rows": ROWS, "x": "m", "y": ["n"] if kind == "pie" else ["n", "k"]})
    assert count(svg, tag) == times


def test_scatter_is_drawn_where_its_numbers_are():
    svg = drawn({"series": [{"type": "scatter", "data": [[1, 2], [3, 4], [None, 1], "odd"]}]})
    assert count(svg, "circle") == 2


def test_texts_are_escaped():
    nasty = '</text><script>alert(1)</script>"'
    svg = drawn({"title": {"text": nasty}, "series": {"type": "line", "name": nasty, "data": [1, 2]}})
    assert count(svg, "script") == 0
    assert nasty in [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    "value",
    [None, 5, "bar", [], {}, {"series": []}, {"series": [{"type": "radar", "data": [1]}]}, {"kind": "bar"},
     {"kind": "bar", "rows": 7}, {"kind": "radar", "rows": ROWS}, {"unavailable": True, "reason": "gone"}],
)  # fmt: skip
def test_what_is_no_chart_is_not_drawn(value: object):
    assert read_chart(value) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SERIES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["bar", "line", "pie", "scatter"]),
        "data": st.lists(JSON | st.tuples(JSON, JSON).map(list), max_size=5),
    },
    optional={"name": JSON},
)
OPTIONS = st.fixed_dictionaries(
    {"series": st.lists(SERIES, max_size=3) | SERIES},
    optional={"title": JSON, "xAxis": JSON | st.fixed_dictionaries({"data": st.lists(JSON, max_size=4)})},
)


@given(OPTIONS | JSON)
def test_whatever_a_tool_calls_a_chart_is_drawn_well_formed_or_not_at_all(value: Any):
    chart = read_chart(value)
    if chart is not None:
        svg = draw(chart)
        assert "nan" not in svg.lower() or "nan" in str(value).lower()
        # What XML cannot hold at all, a browser's HTML parser replaces.
        ET.fromstring("".join(it if it.isprintable() or it == " " else "?" for it in svg))


def test_report_and_page_draw_in_the_same_colours():
    palette = Path(__file__).parents[3] / "web/src/chart/palette.ts"
    (light,) = re.findall(r"light: \[(.*)\]", palette.read_text("utf-8"))
    assert tuple(json.loads(f"[{light}]")) == COLOURS
