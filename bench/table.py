"""What was measured, row by row: printed as tables, kept as JSON."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import quantiles
from typing import Literal

import msgspec

from bench.measure import Comparison


class Aim(msgspec.Struct, frozen=True):
    """What a figure should be."""

    sign: Literal["≤", "≥"]
    value: float
    of: Literal["ratio", "Threadkeep", "P50", "P95", "P99"] = "ratio"

    def is_met(self, figure: float) -> bool:
        """Whether the figure is where it should be."""
        return figure <= self.value if self.sign == "≤" else figure >= self.value

    def __str__(self) -> str:
        return f"{'' if self.of == 'ratio' else f'{self.of} '}{self.sign} {self.value:,g}"


class Line(msgspec.Struct, tag="comparison", frozen=True):
    """Threadkeep against the floor."""

    operation: str
    comparison: Comparison
    aim: Aim | None = None
    unit: str = "µs"

    @property
    def judged(self) -> float:
        """The figure that the aim is for."""
        is_ours = self.aim is not None and self.aim.of == "Threadkeep"
        return self.comparison.ours if is_ours else self.comparison.ratio

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        it = self.comparison
        return (
            self.operation,
            amount(it.floor, self.unit),
            amount(it.ours, self.unit),
            f"{it.ratio:.2f}",
            f"{it.spread[0]:.2f}–{it.spread[1]:.2f}",
            "" if it.cpu_ratio is None else f"{it.cpu_ratio:.2f}",
            *_verdict(self.aim, self.judged),
        )


class Times(msgspec.Struct, tag="times", frozen=True):
    """How long one kind of thing took, or how much of something it was, time after time."""

    what: str
    p50: float
    p95: float
    p99: float
    unit: str = "ms"
    aim: Aim | None = None

    @staticmethod
    def of(what: str, values: Sequence[float], unit: str = "ms", aim: Aim | None = None) -> "Times":
        """What 50, 95 and 99 of a hundred kept to."""
        several = values if len(values) > 1 else [*values] * 2
        hundredths = quantiles(several, n=100, method="inclusive")
        return Times(what, hundredths[49], hundredths[94], hundredths[98], unit, aim)

    @property
    def judged(self) -> float:
        """The figure that the aim is for."""
        return {"P95": self.p95, "P99": self.p99}.get(self.aim.of if self.aim else "", self.p50)

    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        figures = (amount(it, "") for it in (self.p50, self.p95, self.p99))
        return (self.what, *figures, self.unit, *_verdict(self.aim, self.judged))


class Texts(msgspec.Struct, tag="texts", frozen=True):
    """A row of a table with columns of its own."""

    headings: tuple[str, ...]
    texts: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        return self.texts


class Trade(msgspec.Struct, tag="trade", frozen=True):
    """What a piece costs and how long it takes, with one setting of the log's writer."""

    most_rest_ms: float
    rest_per_other_turn: float
    rate: int
    cpu_us: float
    ratio: float
    p50_ms: float
    p99_ms: float
    is_default: bool

    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        rest = f"at most {self.most_rest_ms:g} ms, {self.rest_per_other_turn:g} flushes for each other turn"
        return (
            f"{rest} (default)" if self.is_default else rest,
            f"{self.rate}/s",
            amount(self.cpu_us, "µs"),
            f"{self.ratio:.2f}",
            amount(self.p50_ms, "ms"),
            amount(self.p99_ms, "ms"),
        )


Row = Line | Times | Texts | Trade


def render_rows(rows: Iterable[Row], *, markdown: bool) -> str:
    """One table for each kind of row, in their order."""
    tables = groupby(rows, _headings)
    return "\n\n".join(
        render([row.cells() for row in some], headings, markdown=markdown) for headings, some in tables
    )


def render(lines: Sequence[tuple[str, ...]], headings: tuple[str, ...], *, markdown: bool) -> str:
    """Cells as an aligned table; the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    rows = [_row(cells, widths) for cells in (headings, *lines)]
    rule = ["-" * widths[0], *(f"{'-' * (max(width, 2) - 1)}:" for width in widths[1:])]
    rows.insert(1, rule if markdown else ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" if markdown else "  ".join(row).rstrip() for row in rows)


def amount(value: float, unit: str) -> str:
    """A figure with as many places as say something."""
    text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{text} {unit}".rstrip()


def _headings(row: Row) -> tuple[str, ...]:
    match row:
        case Line():
            return ("operation", "floor", "Threadkeep", "ratio", "spread", "CPU ratio", "aim", "")
        case Times():
            return ("what", "P50", "P95", "P99", "unit", "aim", "")
        case Texts():
            return row.headings
        case Trade():
            return ("the writer rests", "pieces", "CPU a piece", "against bare", "delay P50", "delay P99")


def _verdict(aim: Aim | None, figure: float) -> tuple[str, str]:
    return ("", "") if aim is None else (str(aim), "ok" if aim.is_met(figure) else "miss")


def _row(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.rjust(width) if number else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
