"""What was measured, as it is written: every figure of every round, and who failed where and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from bench.peers.progress import say


@dataclass(slots=True)
class Result:
    """One contender's figures."""

    title: str
    best_case: str
    """What its file says about how it is run."""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    figures: dict[str, list[float | None]] = field(default_factory=dict[str, list[float | None]])
    """By what was measured: the figure of each round, nothing for a round in which it failed."""
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """By where it failed: why."""
    survives: dict[str, bool | int] | None = None
    """A server's: what `kill -9` in the middle of a turn leaves."""

    @property
    def rounds(self) -> int:
        """How many there were, however many of them failed."""
        return max(map(len, self.figures.values()), default=0)

    def as_json(self) -> dict[str, object]:
        """As it is written."""
        return {
            "title": self.title,
            "best case": self.best_case,
            "versions": self.versions,
            "figures": self.figures,
            "failures": self.failures,
            "survives": self.survives,
        }

    def add(self, round_number: int, figures: dict[str, float | None]) -> None:
        """Takes the figures of one round."""
        for name, value in figures.items():
            kept = self.figures.setdefault(name, [])
            kept += [None] * (round_number - len(kept))
            kept.append(value)

    def fail(self, where: str, why: object) -> None:
        """Notes a failure."""
        name = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
        self.failures[where] = f"{name}{why}"[:500]
        say(f"{self.title} failed in {where}: {self.failures[where]}")


def percentile(values: Sequence[float], percent: int) -> float:
    """What so many of a hundred kept to."""
    several = values if len(values) > 1 else [*values, *values]
    return quantiles(several, n=100, method="inclusive")[percent - 1]
