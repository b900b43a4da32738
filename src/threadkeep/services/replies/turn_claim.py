"""A claim: one of a user's turns, taken from their allowance before anything changes for it."""

import asyncio

from threadkeep.domain.ids import TurnId, UserId, new_uuid
from threadkeep.ports.allowances import Allowances


class TurnClaim:
    """A turn that a request may still begin. What the request doesn't use, it gives back.

    The claim outlives a conflict: a request that has stopped a turn for its own can't be refused any more
    because somebody else took the last one meanwhile.
    """

    def __init__(self, allowances: Allowances, user_id: UserId) -> None:
        self._allowances = allowances
        self.user_id = user_id
        self.turn_id = TurnId(new_uuid())
        self.after: TurnId | None = None
        """The turn that ends for it, which no longer counts."""
        self.is_taken = False
        self.is_beginning = False
        """Whether the node has it: then the node counts it, and knows what became of it."""
        self._is_open = True

    async def take(self, running_here: int, after: TurnId | None) -> None:
        """Takes the turn from the user's allowance; RateLimited if nothing is left."""
        self.after, self.is_taken = after, True  # at once: others must not count on the same place
        taking = asyncio.create_task(
            self._allowances.take_turn(self.user_id, self.turn_id, running_here, after=after)
        )
        try:
            await asyncio.shield(taking)
        except BaseException:
            await asyncio.wait([taking])  # a cancelled request may have taken the turn all the same
            self.is_taken = not taking.cancelled() and taking.exception() is None
            raise

    async def close(self) -> None:
        """The request is over: gives the turn back, unless it has begun or may still do so."""
        self._is_open = False
        if self.is_taken and not self.is_beginning:
            await asyncio.shield(asyncio.create_task(self._give_back()))

    async def not_begun(self) -> None:
        """The turn didn't begin; its request may try again."""
        self.is_beginning = False
        if not self._is_open:
            await self._give_back()

    async def _give_back(self) -> None:
        self.is_taken = False
        await self._allowances.give_turn_back(self.user_id, self.turn_id)
