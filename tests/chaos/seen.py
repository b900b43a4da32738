"""What people saw and what befell the servers, as plain data: the records of a run, and its figures."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class SentMessage:
    """A message, and what its sender was told."""

    mark: str
    user: str
    conversation: str
    text: str
    acknowledged: bool = False
    turn_id: str | None = None


@dataclass(slots=True)
class Answered:
    """A decision on what a turn asked."""

    user: str
    turn_id: str
    request_id: str
    action: str
    status: int


@dataclass(slots=True)
class Failover:
    """A replica that took over: how long until it took writes, and until the last person got on."""

    down_s: float
    longest_wait_s: float


@dataclass
class Record:
    """All of a run."""

    engine: str
    seed: int
    sent: list[SentMessage] = field(default_factory=list[SentMessage])
    answered: list[Answered] = field(default_factory=list[Answered])
    streams: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """The events of each turn, as its follower saw them over all nodes and connections."""
    faults: Counter[str] = field(default_factory=Counter[str])
    turns: Counter[str] = field(default_factory=Counter[str])
    """How many there were of each kind, and how they ended."""
    failovers: list[Failover] = field(default_factory=list[Failover])
    losses: list[str] = field(default_factory=list[str])
    """What broke a promise."""

    def figures(self, minutes: float) -> dict[str, Any]:
        """What is worth keeping of it."""
        return {
            "engine": self.engine,
            "seed": self.seed,
            "minutes": round(minutes, 1),
            "faults": {"all": self.faults.total(), **dict(sorted(self.faults.items()))},
            "messages": sum(it.acknowledged for it in self.sent),
            "turns": dict(sorted(self.turns.items())),
            "failovers": [
                {name: round(seconds, 1) for name, seconds in asdict(it).items()} for it in self.failovers
            ],
            "losses": self.losses,
        }
