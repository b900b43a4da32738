"""How a node controls a turn that it runs."""

import asyncio

from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.engine.stop import Stop


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
