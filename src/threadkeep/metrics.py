"""Counts of what this process has done so far."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from threadkeep.domain.message import Usage
from threadkeep.domain.money import Cost
from threadkeep.domain.turn import Turn

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Histogram:
    """How often something took how long."""

    def __init__(self, bounds: Sequence[float] = _BOUNDS_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one more."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers of one node."""

    turns_ended: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[str] = field(default_factory=Counter[str])
    costs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """What model calls have cost, in trillionths, by model and currency."""
    event_lag: Histogram = field(default_factory=Histogram)
    """From an event's arrival until it is stored, and so shown."""
    store_latency: dict[str, Histogram] = field(
        default_factory=lambda: {"read": Histogram(), "write": Histogram()}
    )

    def charged(self, model: str | None, cost: Cost | None) -> None:
        """A model call was added to the ledger."""
        if cost is not None:
            self.costs[model or "", cost.currency] += cost.trillionths

    def turn_ended(self, turn: Turn) -> None:
        """A turn has ended on this node."""
        usage = turn.usage or Usage(0, 0)
        self.turns_ended[turn.status.value] += 1
        self.tokens["input"] += usage.input_tokens
        self.tokens["output"] += usage.output_tokens
        self.tokens["cache_read"] += usage.cache_read_tokens
        self.tokens["cache_write"] += usage.cache_write_tokens
