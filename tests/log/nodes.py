"""Nodes on one database, for tests."""

from dataclasses import dataclass, field

from tests.services.running import (
    Fault,
    faulty,
)
from threadkeep.clock import Clock, system_clock
from threadkeep.domain.events import (
    TurnEvent,
)
from threadkeep.log.node import Node
from threadkeep.metrics import Metrics
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import Lease
from threadkeep.storage.bus import LocalBus
from threadkeep.storage.database import Database

DEAD = Lease("a-dead-node", 1, 0)


@dataclass
class Nodes:
    """Makes nodes on one database; each is as far from the others as processes are, but for the bus."""

    store: Store
    database: Database
    made: list[Node] = field(default_factory=list[Node])

    def start(
        self,
        *,
        log: Fault | None = None,
        beginning: Fault | None = None,
        turns: Fault | None = None,
        bus: LocalBus | None = None,
        clock: Clock = system_clock,
        alone: bool = False,
    ) -> Node:
        """Another node."""
        store = faulty(self.store, self.database, log=log, beginning=beginning, turns=turns)
        self.made.append(Node(store, bus or LocalBus(), clock, Metrics(), alone=alone))
        return self.made[-1]


def kinds(events: list[TurnEvent]) -> list[str]:
    """The types of events."""
    return [event.body.type for event in events]
