"""Charts as inline SVG: no script, nothing fetched, every text escaped."""

from collections.abc import Iterator, Sequence
from html import escape
from math import cos, pi, sin
from sys import float_info

from threadkeep.domain.chart import Chart, ChartKind, Series

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 48, 44
# The page draws with the same: web/src/chart/palette.ts.
COLOURS = ("#2f7a63", "#b5651d", "#3b5ba9", "#8a4b86", "#9a8a2a", "#4a8fa8", "#b0484a", "#6b6f3a")
MOST_LABELS = 12
TICKS = 5


def draw(chart: Chart) -> str:
    """A chart as an SVG element."""
    is_pie = chart.series[0].kind is ChartKind.PIE
    parts = _pie(chart) if is_pie else _plot(chart)
    title = escape(chart.title or "Chart")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}" font-family="sans-serif" font-size="11"><title>{title}</title>'
        f"{_text(WIDTH / 2, 18, chart.title, 'middle', size=14)}{''.join(parts)}</svg>"
    )


def _plot(chart: Chart) -> Iterator[str]:
    scale = _Scale.of([value for series in chart.series for value in series.values], LEFT)
    low, high = scale.low, scale.high
    for tick in range(TICKS + 1):
        value = low + (high - low) * tick / TICKS
        y = _y(value, scale)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e3dfd7"/>'
        yield _text(LEFT - 6, y + 4, f"{value:.4g}", "end")
    scatter = [x for series in chart.series for x in series.xs]
    across = _Scale.of(scatter, 0) if scatter else None
    count = max(len(chart.labels), 1)
    if across is None:
        step = -(-count // MOST_LABELS)
        for index in range(0, count, step):
            yield _text(_x(index + 0.5, count), HEIGHT - BOTTOM + 16, _short(chart.labels[index]), "middle")
    else:
        for tick in range(TICKS + 1):
            value = across.low + (across.high - across.low) * tick / TICKS
            yield _text(_x(tick, TICKS), HEIGHT - BOTTOM + 16, f"{value:.4g}", "middle")
    bars = [series for series in chart.series if series.kind is ChartKind.BAR]
    for number, series in enumerate(chart.series):
        colour = COLOURS[number % len(COLOURS)]
        match series.kind:
            case ChartKind.BAR:
                yield from _bars(series, bars.index(series), len(bars), count, scale, colour)
            case ChartKind.SCATTER if across is not None:
                yield from _dots(series, across, scale, colour)
            case _:
                yield from _line(series, count, scale, colour)
    yield from _legend([series.name for series in chart.series])


def _bars(series: Series, place: int, places: int, count: int, scale: "_Scale", colour: str) -> Iterator[str]:
    room = (WIDTH - LEFT - RIGHT) / count * 0.8
    for index, value in enumerate(series.values[:count]):
        if value is not None:
            x = _x(index + 0.5, count) - room / 2 + room / places * place
            top, bottom = sorted((_y(value, scale), _y(0, scale)))
            yield (
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{room / places:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour}"/>'
            )


def _line(series: Series, count: int, scale: "_Scale", colour: str) -> Iterator[str]:
    stretch: list[str] = []
    for index, value in enumerate((*series.values[:count], None)):
        if value is not None:
            stretch.append(f"{_x(index + 0.5, count):.1f},{_y(value, scale):.1f}")
            continue
        if stretch:
            yield f'<polyline points="{" ".join(stretch)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        stretch = []


def _dots(series: Series, across: "_Scale", scale: "_Scale", colour: str) -> Iterator[str]:
    for x, value in zip(series.xs, series.values, strict=True):
        if x is not None and value is not None:
            at = _x(across.share(x), 1)
            yield f'<circle cx="{at:.1f}" cy="{_y(value, scale):.1f}" r="3" fill="{colour}"/>'


def _pie(chart: Chart) -> Iterator[str]:
    values = [max(value or 0.0, 0.0) for value in chart.series[0].values]
    whole, angle = sum(values) or 1.0, -pi / 2
    x, y, radius = WIDTH / 2, (HEIGHT + TOP) / 2, (HEIGHT - TOP) / 2 - 24
    for number, value in enumerate(values):
        share = value / whole
        end = angle + share * 2 * pi
        colour = COLOURS[number % len(COLOURS)]
        if share > 0.9999:
            yield f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>'
        elif share:
            yield (
                f'<path d="M{x},{y} L{x + radius * cos(angle):.1f},{y + radius * sin(angle):.1f} '
                f"A{radius},{radius} 0 {int(share > 0.5)} 1 "
                f'{x + radius * cos(end):.1f},{y + radius * sin(end):.1f} Z" fill="{colour}" stroke="#fff"/>'
            )
        middle = (angle + end) / 2
        if share > 0.02:
            side = "start" if cos(middle) >= 0 else "end"
            at = x + (radius + 8) * cos(middle), y + (radius + 8) * sin(middle) + 4
            yield _text(*at, f"{_short(chart.labels[number])} {share:.0%}", side)
        angle = end


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = float(LEFT)
    for number, name in enumerate(names):
        if name and x < WIDTH - RIGHT - 60:
            yield f'<rect x="{x:.1f}" y="28" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
            yield _text(x + 14, 37, _short(name), "start")
            x += 26 + 8 * len(_short(name))


class _Scale:
    """The range that an axis shows; never empty."""

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high

    @staticmethod
    def of(values: Sequence[float | None], zero: int) -> "_Scale":
        """A range that contains the values, and 0 if it is the base line."""
        known = [value for value in values if value is not None] or [0.0]
        low, high = (min(*known, 0.0), max(*known, 0.0)) if zero else (min(known), max(known))
        # Halved first: the difference of two huge numbers may be too large for a number.
        if high / 2 - low / 2 > 0:
            return _Scale(low, high)
        around = max(0.5, abs(low) / 1000)  # 0.5 beside a huge number is nothing
        return _Scale(max(low - around, -float_info.max), min(low + around, float_info.max))

    def share(self, value: float) -> float:
        """A value's position, from 0 to 1."""
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)


def _x(place: float, places: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * place / places


def _y(value: float, scale: _Scale) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale.share(value)


def _short(text: str) -> str:
    return text if len(text) <= 14 else f"{text[:13]}…"


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
