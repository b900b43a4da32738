"""Counts of what this process has done so far."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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


MOST_STEP_NAMES = 200
"""How many names of steps are counted by themselves: code may make them up as it runs."""
OTHER_STEPS = "other"


class StepCount(NamedTuple):
    """What is counted of a program's step that has ended."""

    agent: str
    """The program's key."""
    name: str
    status: str
    effect: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers of one node."""

    turns_ended: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[str] = field(default_factory=Counter[str])
    costs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """What model calls have cost, in trillionths, by model and currency."""
    steps: Counter[StepCount] = field(default_factory=Counter[StepCount])
    """Of programs that are agents."""
    step_names: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Those that are counted by themselves, each with its program's key."""
    divergences: Counter[str] = field(default_factory=Counter[str])
    """Turns whose program, run again, asked for something else than is recorded, by its key."""
    unknown_outcomes: Counter[str] = field(default_factory=Counter[str])
    """Steps that may have taken effect and nobody knows, by the program's key."""
    replayed: Counter[str] = field(default_factory=Counter[str])
    """Recorded results that a program was run again with, by its key."""
    idle: Counter[str] = field(default_factory=lambda: Counter({"noted": 0, "deleted": 0}))
    """Conversations without messages: whose users were told, and those deleted."""
    event_lag: Histogram = field(default_factory=Histogram)
    """From an event's arrival until it is stored, and so shown."""
    store_latency: dict[str, Histogram] = field(
        default_factory=lambda: {"read": Histogram(), "write": Histogram()}
    )

    def charged(self, model: str | None, cost: Cost | None) -> None:
        """A model call was added to the ledger."""
        if cost is not None:
            self.costs[model or "", cost.currency] += cost.trillionths

    def step_ended(self, step: StepCount) -> None:
        """A step of a program has ended on this node."""
        if step.status == "unknown":
            self.unknown_outcomes[step.agent] += 1
        if len(self.step_names) < MOST_STEP_NAMES:
            self.step_names.add((step.agent, step.name))
        elif (step.agent, step.name) not in self.step_names:
            step = step._replace(name=OTHER_STEPS)
        self.steps[step] += 1

    def turn_ended(self, turn: Turn) -> None:
        """A turn has ended on this node."""
        usage = turn.usage or Usage(0, 0)
        self.turns_ended[turn.status.value] += 1
        self.tokens["input"] += usage.input_tokens
        self.tokens["output"] += usage.output_tokens
        self.tokens["cache_read"] += usage.cache_read_tokens
        self.tokens["cache_write"] += usage.cache_write_tokens
