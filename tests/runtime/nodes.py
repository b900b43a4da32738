"""Nodes on one database, for tests."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tests.services.running import (
    Fault,
    faulty,
)
from threadkeep.clock import Clock, system_clock
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import AgentNotFound
from threadkeep.domain.events import (
    TurnEvent,
)
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Lease, Turn
from threadkeep.engine.code.programs import Programs
from threadkeep.engine.ending import ABANDONED, cut_off
from threadkeep.engine.fold import Folding
from threadkeep.engine.loop import TurnStep
from threadkeep.log.format import LogEntry
from threadkeep.loops import Loops
from threadkeep.metrics import Metrics
from threadkeep.runtime.node import Node
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.runtime.user_events import UserEvents
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import NEVER_MS, HeldTurn

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
        unknown: str = "",
        programs: Programs | None = None,
        built_in: Programs | None = None,
        metrics: Metrics | None = None,
    ) -> Node:
        """Another node, which may not know a model."""
        store = faulty(self.store, self.database, log=log, beginning=beginning, turns=turns)
        bus = bus or LocalBus()
        events, metrics = UserEvents(bus), metrics or Metrics()
        node = Node(
            store,
            bus,
            events,
            clock,
            metrics,
            Loops(),
            alone=alone,
            programs=programs,
            built_in=built_in,
        )
        node.runner.resume_with(GivesUp(unknown))
        self.made.append(node)
        return node


class GivesUp:
    """Ends turns that are taken over, with what there is of them; no other follows."""

    within_ms = NEVER_MS

    def __init__(self, *unknown: str) -> None:
        self._unknown = unknown

    def knows(self, model: str | None) -> bool:
        """Whether the node has a model."""
        return model not in self._unknown

    def resume(self, held: HeldTurn) -> "Ends":
        """The end, and nothing after it."""
        return Ends()


class Ends:
    """A turn that is about to end."""

    def __init__(self) -> None:
        self._folding = Folding()

    def add(self, entry: LogEntry) -> None:
        """The next entry of its log."""
        if isinstance(entry, TurnEvent):
            self._folding.add(entry)

    def course(self, *, is_takeover: bool) -> TurnCourse:
        """Its last events."""
        return TurnCourse(lambda held, control: self._steps(held), _no_next_turn)

    async def _steps(self, held: HeldTurn) -> AsyncGenerator[TurnStep]:
        folding = self._folding
        reply = folding.message(held.reply)
        last = cut_off(
            ABANDONED, reply, folding.open_calls, open_iteration=folding.open_iteration, request_tokens=0
        )
        for event in last:
            yield event


async def _no_next_turn(
    previous: Turn, conversation: Conversation, message: QueuedMessage
) -> tuple[BegunTurn, TurnCourse]:
    raise AgentNotFound


def kinds(events: list[TurnEvent]) -> list[str]:
    """The types of events."""
    return [event.body.type for event in events]
