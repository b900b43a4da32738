"""The turns that run on this node."""

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from threadkeep.clock import monotonic
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.turn import OpenStep
from threadkeep.engine.stop import StopReason, TurnLost
from threadkeep.log.writer import TurnLog
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.open_steps import OpenSteps
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.storage.turns import LEASE_MS


@dataclass(slots=True)
class NodeTurn:
    """A turn that runs here, or will once its start is stored."""

    held: HeldTurn
    log: TurnLog
    control: TurnControl
    course: TurnCourse
    begun: BegunTurn | None = None
    """What its start stores; None if it had begun before, here or elsewhere."""
    steps: OpenSteps = field(default_factory=OpenSteps)
    """What its program does, if that is what runs it."""
    noted_step: OpenStep | None = None
    """What the database says that it is doing."""
    task: "asyncio.Task[None]" = field(init=False)
    begun_at: float = field(init=False)
    """When it began to run here, by this process's own clock."""
    leased_until: float = field(init=False)
    """By this process's own clock, which is useless if the process was suspended."""

    @property
    def is_resumed(self) -> bool:
        """Whether it had begun before, here or elsewhere."""
        return self.begun is None

    @property
    def opens_conversation(self) -> bool:
        """Whether its conversation is stored with it, so that nobody knows of it yet."""
        return self.begun is not None and self.begun.new_conversation is not None


class NodeTurns:
    """The turns that run here, by id; each is removed when its task is done."""

    def __init__(self) -> None:
        self._turns: dict[TurnId, NodeTurn] = {}

    def add(self, turn: NodeTurn, task: "asyncio.Task[None]") -> None:
        """Adds a turn that has started to run."""
        turn.task, turn.begun_at = task, monotonic()
        turn.leased_until = turn.begun_at + LEASE_MS / 1000
        self._turns[turn.log.turn_id] = turn
        task.add_done_callback(lambda _: self._forget(turn))

    def _forget(self, turn: NodeTurn) -> None:
        if self._turns.get(turn.log.turn_id) is turn:
            del self._turns[turn.log.turn_id]

    def discard(self, log: TurnLog) -> None:
        """Removes a turn by its closed log; the turn may already run here again, with another log."""
        turn = self._turns.get(log.turn_id)
        if turn is not None and turn.log is log:
            del self._turns[log.turn_id]

    def check_lease(self, turn_id: TurnId) -> None:
        """Raises TurnLost if a turn's lease may have expired: another node may have taken it over."""
        turn = self._turns.get(turn_id)
        if turn is None or turn.leased_until < monotonic():
            raise TurnLost

    def get(self, turn_id: TurnId) -> NodeTurn | None:
        """A turn, if it runs here."""
        return self._turns.get(turn_id)

    def all(self) -> dict[TurnId, NodeTurn]:
        """The turns that run now."""
        return dict(self._turns)

    @property
    def tasks(self) -> set["asyncio.Task[None]"]:
        """The tasks of the turns that run now."""
        return {turn.task for turn in self._turns.values()}

    @property
    def count(self) -> int:
        """How many turns haven't ended; one whose end is visible no longer counts."""
        return sum(not turn.log.live.ended for turn in self._turns.values())

    def count_by_program(self) -> Counter[str]:
        """How many turns of each program run here, by its key."""
        codes = (turn.held.turn.code for turn in self._turns.values() if not turn.log.live.ended)
        return Counter(code.key for code in codes if code is not None)

    def count_of(self, user_id: UserId, besides: Collection[TurnId | None] = ()) -> int:
        """How many of a user's turns haven't ended, besides some."""
        return sum(
            turn.held.conversation.user_id == user_id and not turn.log.live.ended and id_ not in besides
            for id_, turn in self._turns.items()
        )

    def stop(self, turn_id: TurnId, reason: StopReason) -> bool:
        """Stops a turn; returns whether it runs here."""
        turn = self._turns.get(turn_id)
        if turn is not None:
            turn.control.stop.request(reason)
        return turn is not None

    def nudge(self, turn_id: TurnId) -> None:
        """Makes a turn check for input from its user, if it runs here."""
        if turn := self._turns.get(turn_id):
            turn.control.nudge()
