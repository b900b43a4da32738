"""Places for replies outside turns: each counts, while it runs, like a turn of its user on any node.

A place is held for a while and renewed while its reply runs, so that those of a process that was killed, or
of a client that left before its reply began, are free again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.loops import Loop, Loops
from threadkeep.ports.allowances import HELD_S, Allowances, ReplyPlace
from threadkeep.tasks import end_tasks

RENEWED_EVERY_S = HELD_S / 3


class ReplyPlaces:
    """The places of this process."""

    def __init__(self, allowances: Allowances, running_of: Callable[[UserId], int], loops: Loops) -> None:
        self._allowances = allowances
        self._running_of = running_of
        self._held: set[ReplyPlace] = set()
        self._loop: Loop = loops.start("renewal of places", self.renew, self._until_next)

    async def take(self, user_id: UserId) -> ReplyPlace:
        """Takes a place, which is free again after a while unless it is held; RateLimited if none is left."""
        place = ReplyPlace(user_id, new_uuid())
        await self._allowances.take_reply(place, self._running_of(user_id))
        return place

    @asynccontextmanager
    async def hold(self, place: ReplyPlace) -> AsyncGenerator[None]:
        """Holds a place while its reply runs; then it is free."""
        self._held.add(place)
        try:
            yield
        finally:
            self._held.discard(place)
            with suppress(StorageError):  # it is free again after a while
                await self._allowances.give_reply_back(place)

    async def renew(self) -> None:
        """Keeps the places of running replies."""
        if self._held:
            await self._allowances.renew_replies(frozenset(self._held))

    async def close(self) -> None:
        """Stops renewing."""
        await end_tasks(self._loop.task)

    async def _until_next(self) -> None:
        await asyncio.sleep(RENEWED_EVERY_S)
