"""How a node controls a turn that it runs."""

import asyncio
from collections.abc import Awaitable, Callable

from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.engine.stop import Stop

Calling = Callable[[], Awaitable[int]]


async def _called_at_once() -> int:
    """For turns without a log."""
    return 0


class TurnControl:
    """Signals to a turn: that it must stop, or that there may be input from its user."""

    def __init__(self, steering: Steering = nobody_steers, calling: Calling = _called_at_once) -> None:
        self.stop = Stop()
        self.steering = steering
        """Fetches the user's messages since the last call."""
        self.calling = calling
        """Stores what the turn has done so far; returns when the model call that begins now was begun."""
        self._heard = asyncio.Event()

    def nudge(self) -> None:
        """There may be input from the user."""
        self._heard.set()

    async def heard(self) -> None:
        """Returns when there may be input from the user."""
        await self._heard.wait()
        self._heard.clear()
