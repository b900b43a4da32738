"""Workers: the processes that run the programs of agents in code, as they say themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from threadkeep.domain.agent import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """What a worker says of itself."""

    is_open: bool = True
    """Whether it takes turns."""
    name: str = ""
    sdk: str = ""
    capacity: int | None = None
    """How many turns it runs at once at most; None without a limit."""
    running: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many turns of each program it runs."""
    blocked_ms: int = 0
    """For how long its event loop has not answered."""


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A process that runs programs, as it was seen last."""

    node: str
    worker: str
    name: str
    sdk: str
    capacity: int | None
    connected_at: int
    seen_at: int
    blocked_ms: int
    is_open: bool
    codes: Sequence[Code]
    running: int
    """How many turns."""

    @property
    def id(self) -> str:
        """Its id: that of its node, if it is the node itself."""
        return self.worker or self.node

    @property
    def is_draining(self) -> bool:
        """Whether it is ending and takes no more turns."""
        return not self.is_open and not self.blocked_ms
