"""The turns that run on this node."""

import asyncio
from dataclasses import dataclass

from threadkeep.domain.ids import TurnId, UserId
from threadkeep.engine.stop import Stop, StopReason
from threadkeep.log.writer import TurnLog


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that runs here."""

    user_id: UserId
    task: "asyncio.Task[None]"
    log: TurnLog
    stop: Stop


class RunningTurns:
    """The turns that run here, by their ids; each is forgotten when its task is done."""

    def __init__(self) -> None:
        self._turns: dict[TurnId, RunningTurn] = {}

    def add(self, turn: RunningTurn) -> None:
        """A turn that has begun to run."""
        turn_id = turn.log.turn_id
        self._turns[turn_id] = turn
        turn.task.add_done_callback(lambda _: self._turns.pop(turn_id, None))

    def pop(self, turn_id: TurnId) -> RunningTurn:
        """Forgets a turn that this node cannot write any more."""
        return self._turns.pop(turn_id)

    def get(self, turn_id: TurnId) -> RunningTurn | None:
        """A turn, if it runs here."""
        return self._turns.get(turn_id)

    def all(self) -> dict[TurnId, RunningTurn]:
        """Those that run now."""
        return dict(self._turns)

    @property
    def tasks(self) -> set["asyncio.Task[None]"]:
        """The tasks of those that run now."""
        return {turn.task for turn in self._turns.values()}

    @property
    def count(self) -> int:
        """How many have not ended; who has seen a turn's end does not count it any more."""
        return sum(not turn.log.live.ended for turn in self._turns.values())

    def count_of(self, user_id: UserId) -> int:
        """How many of a user's have not ended."""
        return sum(turn.user_id == user_id and not turn.log.live.ended for turn in self._turns.values())

    def stop(self, turn_id: TurnId, reason: StopReason) -> bool:
        """Stops a turn; tells whether it runs here."""
        turn = self._turns.get(turn_id)
        if turn is not None:
            turn.stop.request(reason)
        return turn is not None
