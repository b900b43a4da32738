"""The plots of the documentation, as SVG: bars that are labelled where they end, and curves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.drawing import CHARACTER, Drawing

WIDTH, MARGIN = 760, 16
ROW, BAR, SIZE = 24, 16, 12
HEAD = 44
LIGHT = {"ours": "#0969da", "floor": "#d8dee4", "second": "#bc4c00"}
DARK = {"ours": "#4493f8", "floor": "#3d444d", "second": "#f0883e"}
TICK_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; `colour` is `ours`, `floor`, or `bar` for everybody else."""

    name: str
    value: float
    said: str
    """What stands at its end, such as `231 µs, 6.6 ×`."""
    colour: str = "bar"


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one scale, below a heading."""

    heading: str
    bars: Sequence[Bar]
    is_logarithmic: bool = False

    def share(self, bar: Bar) -> float:
        """How much of the space a bar takes; a logarithmic scale begins at half of the least."""
        most = max(it.value for it in self.bars)
        if not self.is_logarithmic:
            return bar.value / most
        least = min(it.value for it in self.bars) / 2
        return math.log(bar.value / least) / math.log(most / least)


def draw_bars(title: str, groups: Sequence[Bars], *, note: str = "") -> str:
    """Groups of bars below each other, each with a scale of its own."""
    rows = sum(len(group.bars) + bool(group.heading) for group in groups)
    height = HEAD + rows * ROW + (len(groups) - 1) * ROW // 2 + (30 if note else 8)
    drawing = Drawing(WIDTH, height, light=LIGHT, dark=DARK)
    drawing.text(MARGIN, 27, title, size=15, bold=True)
    bars = [bar for group in groups for bar in group.bars]
    left = MARGIN + max(_width(bar.name, bold=bar.colour == "ours") for bar in bars) + 10
    right = WIDTH - MARGIN - max(_width(bar.said, bold=bar.colour == "ours") for bar in bars) - 8
    y = HEAD
    for group in groups:
        if group.heading:
            drawing.text(MARGIN, y + 15, group.heading, colour="faint")
            y += ROW
        for bar in group.bars:
            width = max(1.5, group.share(bar) * (right - left))
            is_ours = bar.colour == "ours"
            drawing.text(left - 8, y + 14, bar.name, anchor="end", bold=is_ours)
            drawing.rectangle(left, y + 2, width, BAR, bar.colour)
            drawing.text(left + width + 7, y + 14, bar.said, bold=is_ours)
            y += ROW
        y += ROW // 2
    if note:
        drawing.text(MARGIN, height - 10, note, size=11, colour="faint")
    return drawing.render()


@dataclass(frozen=True, slots=True)
class Axis:
    """What a direction shows; it begins at zero, or is logarithmic."""

    name: str
    is_logarithmic: bool = False
    ticks: Sequence[float] = ()
    """Which values it names, if not round ones."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve, with what to write beside it if anything."""

    x: float
    y: float
    said: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in their order; the name stands at the last one."""

    name: str
    points: Sequence[Point]
    colour: str = "bar"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where the values of an axis lie."""

    first: float
    last: float
    begin: float
    end: float
    is_logarithmic: bool

    def __call__(self, value: float) -> float:
        first, last, at = (
            math.log(max(it, 1e-9)) if self.is_logarithmic else it for it in (self.first, self.last, value)
        )
        return self.begin + (at - first) / (last - first) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round values between the ends."""
        if self.is_logarithmic:
            tens = range(math.floor(math.log10(self.first)), math.ceil(math.log10(self.last)) + 1)
            factors = (1, 2, 5) if self.last / self.first < 100 else (1,)
            steps = [factor * 10.0**ten for ten in tens for factor in factors]
            return [it for it in steps if self.first <= it <= self.last]
        rough = (self.last - self.first) / 5
        ten = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * ten for factor in TICK_STEPS if factor * ten >= rough)
        return [step * number for number in range(int(self.last / step) + 1)]


def draw_curves(
    title: str, x_axis: Axis, y_axis: Axis, curves: Sequence[Curve], *, height: int = 380, note: str = ""
) -> str:
    """Curves over one pair of axes."""
    points = [point for curve in curves for point in curve.points]
    bottom = height - (58 if note else 44)
    names = max(_width(curve.name, bold=curve.colour == "ours") for curve in curves)
    x = _scale(x_axis, [it.x for it in points], MARGIN + 44, WIDTH - MARGIN - names - 12)
    y = _scale(y_axis, [it.y for it in points], bottom, HEAD + 26)
    drawing = Drawing(WIDTH, height, light=LIGHT, dark=DARK)
    drawing.text(MARGIN, 27, title, size=15, bold=True)
    drawing.text(MARGIN, HEAD + 8, y_axis.name, size=11, colour="faint")
    for tick in y_axis.ticks or y.ticks():
        drawing.line(x.begin, y(tick), x.end, y(tick))
        drawing.text(x.begin - 8, y(tick) + 4, f"{tick:g}", size=11, colour="faint", anchor="end")
    for tick in x_axis.ticks or x.ticks():
        drawing.text(x(tick), bottom + 18, f"{tick:g}", size=11, colour="faint", anchor="middle")
    drawing.text(x.end, bottom + 36, x_axis.name, size=11, colour="faint", anchor="end")
    for curve in curves:
        drawing.curve([(x(it.x), y(it.y)) for it in curve.points], curve.colour)
        for it in curve.points:
            drawing.dot(x(it.x), y(it.y), curve.colour)
            if it.said:
                drawing.text(x(it.x) + 7, y(it.y) - 7, it.said, size=11)
    _draw_names(drawing, curves, x, y)
    if note:
        drawing.text(MARGIN, height - 10, note, size=11, colour="faint")
    return drawing.render()


def _draw_names(drawing: Drawing, curves: Sequence[Curve], x: _Scale, y: _Scale) -> None:
    """Writes each name beside its curve's end, none over another."""
    lowest = math.inf
    for curve in sorted(curves, key=lambda it: -y(it.points[-1].y)):
        end = curve.points[-1]
        at = min(y(end.y) + (16 if end.said else 4), lowest - 15)
        lowest = at
        drawing.text(x(end.x) + 10, at, curve.name, bold=curve.colour == "ours")


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> _Scale:
    low, high = min(values), max(values)
    if axis.is_logarithmic:
        return _Scale(low / 1.15, high * 1.15, begin, end, is_logarithmic=True)
    return _Scale(0, high * 1.05, begin, end, is_logarithmic=False)


def _width(said: str, *, bold: bool = False) -> int:
    return int(len(said) * SIZE * CHARACTER * (1.12 if bold else 1)) + 2
