"""The table that is printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Literal

from bench.measure import Comparison

DELAY_HEADINGS = ("operation", "P50 ms", "P99 ms", "most ms", "aim", "")
HEADINGS = ("operation", "floor", "Threadkeep", "ratio", "spread", "CPU ratio", "aim", "")


@dataclass(frozen=True, slots=True)
class Aim:
    """What a ratio should be."""

    sign: Literal["≤", "≥"]
    value: float

    def is_met(self, ratio: float) -> bool:
        """Whether the ratio is where it should be."""
        return ratio <= self.value if self.sign == "≤" else ratio >= self.value

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    operation: str
    comparison: Comparison
    aim: Aim | None = None
    unit: str = "µs"

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        it = self.comparison
        verdict = "" if self.aim is None else "ok" if self.aim.is_met(it.ratio) else "miss"
        return (
            self.operation,
            _amount(it.floor, self.unit),
            _amount(it.ours, self.unit),
            f"{it.ratio:.2f}",
            f"{it.spread[0]:.2f}–{it.spread[1]:.2f}",
            "" if it.cpu_ratio is None else f"{it.cpu_ratio:.2f}",
            "" if self.aim is None else str(self.aim),
            verdict,
        )


@dataclass(frozen=True, slots=True)
class Delays:
    """How long one kind of thing took, time after time."""

    operation: str
    milliseconds: Sequence[float]
    aim: float | None = None
    aim_is_for: Literal["P50", "P99"] = "P99"

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        hundredths = quantiles(self.milliseconds, n=100, method="inclusive")
        figures = hundredths[49], hundredths[98], max(self.milliseconds)
        judged = figures[0] if self.aim_is_for == "P50" else figures[1]
        verdict = "" if self.aim is None else "ok" if judged < self.aim else "miss"
        aim = "" if self.aim is None else f"{self.aim_is_for} < {self.aim:g}"
        return (self.operation, *(f"{it:.1f}" for it in figures), aim, verdict)


TIME_HEADINGS = ("what", "P50", "P95", "P99", "unit", "aim for P95", "")


@dataclass(frozen=True, slots=True)
class Times:
    """How long one kind of thing took, or how much of something it was, judged by what 95 of 100 kept to."""

    what: str
    values: Sequence[float]
    unit: str = "ms"
    aim: float | None = None

    def percentile(self, percent: int) -> float:
        """What so many of a hundred kept to."""
        several = self.values if len(self.values) > 1 else [*self.values] * 2
        return quantiles(several, n=100, method="inclusive")[percent - 1]

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        figures = self.percentile(50), self.percentile(95), self.percentile(99)
        verdict = "" if self.aim is None else "ok" if figures[1] <= self.aim else "miss"
        aim = "" if self.aim is None else f"≤ {self.aim:g}"
        return (self.what, *(_amount(it, "") for it in figures), self.unit, aim, verdict)


def render(lines: Sequence[tuple[str, ...]], headings: tuple[str, ...], *, markdown: bool) -> str:
    """Cells as an aligned table; the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    rows = [_row(cells, widths) for cells in (headings, *lines)]
    rule = ["-" * widths[0], *(f"{'-' * (max(width, 2) - 1)}:" for width in widths[1:])]
    rows.insert(1, rule if markdown else ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" if markdown else "  ".join(row).rstrip() for row in rows)


def _row(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.rjust(width) if number else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]


def _amount(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{text} {unit}".rstrip()
