"""Bars as SVG, readable on light and dark pages."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, NAME_WIDTH, VALUE_WIDTH = 760, 230, 110
BAR, GAP, TOP = 20, 8, 34

_STYLE = """text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.bar{fill:#8c959f}
.ours{fill:#0969da}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#6e7681}.ours{fill:#4493f8}}"""


class Bar(NamedTuple):
    """One line of a plot."""

    name: str
    value: float
    shown: str
    is_ours: bool = False


def draw_bars(title: str, bars: Sequence[Bar], *, logarithmic: bool = False) -> str:
    """A plot of horizontal bars, the longest as long as the space."""
    lengths = _lengths([bar.value for bar in bars], logarithmic=logarithmic)
    space = WIDTH - NAME_WIDTH - VALUE_WIDTH
    height = TOP + len(bars) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="0" y="16">{escape(title)}</text>',
    ]
    for number, (bar, length) in enumerate(zip(bars, lengths, strict=True)):
        y = TOP + number * (BAR + GAP)
        width = max(1, round(length * space))
        kind = "ours" if bar.is_ours else "bar"
        lines += [
            f'<text x="{NAME_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(bar.name)}</text>',
            f'<rect class="{kind}" x="{NAME_WIDTH}" y="{y}" width="{width}" height="{BAR}" rx="3"/>',
            f'<text x="{NAME_WIDTH + width + 6}" y="{y + 15}">{escape(bar.shown)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _lengths(values: Sequence[float], *, logarithmic: bool) -> list[float]:
    """Parts of the whole space. A logarithmic scale begins at half of the least."""
    if not logarithmic:
        return [value / max(values) for value in values]
    least = min(values) / 2
    return [math.log(value / least) / math.log(max(values) / least) for value in values]
