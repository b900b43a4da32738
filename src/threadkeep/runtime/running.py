"""The turns that run on this node."""

import asyncio
import time
from dataclasses import dataclass, field

from threadkeep.domain.ids import TurnId, UserId
from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.engine.stop import Stop, StopReason
from threadkeep.log.writer import TurnLog, TurnLost
from threadkeep.ports.turn_log import LEASE_MS


class TurnControl:
    """Signals to a turn: that it must stop, or that there may be input from its user."""

    def __init__(self, steering: Steering = nobody_steers) -> None:
        self.stop = Stop()
        self.steering = steering
        """Fetches the user's messages since the last call."""
        self._heard = asyncio.Event()

    def nudge(self) -> None:
        """There may be input from the user."""
        self._heard.set()

    async def heard(self) -> None:
        """Returns when there may be input from the user."""
        await self._heard.wait()
        self._heard.clear()


@dataclass(slots=True)
class NodeTurn:
    """A turn that runs here."""

    user_id: UserId
    task: "asyncio.Task[None]"
    log: TurnLog
    control: TurnControl
    leased_until: float = field(default_factory=lambda: time.monotonic() + LEASE_MS / 1000)
    """By this process's own clock, which is useless if the process was suspended."""


class NodeTurns:
    """The turns that run here, by id; each is removed when its task is done."""

    def __init__(self) -> None:
        self._turns: dict[TurnId, NodeTurn] = {}

    def add(self, turn: NodeTurn) -> None:
        """Adds a turn that has started to run."""
        turn_id = turn.log.turn_id
        self._turns[turn_id] = turn
        turn.task.add_done_callback(lambda _: self._forget(turn))

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
        if turn is None or turn.leased_until < time.monotonic():
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

    def count_of(self, user_id: UserId) -> int:
        """How many of a user's turns haven't ended."""
        return sum(turn.user_id == user_id and not turn.log.live.ended for turn in self._turns.values())

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
