"""A few slots for work that costs a process each: users take turns, however much one of them sends."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

from threadkeep.domain.ids import UserId


class FairSlots:
    """One queue per user. A free slot goes to the user who has the fewest, and among those to the one who got
    one the longest ago. Nobody has more than `of_one`, if that is given.
    """

    def __init__(self, at_once: int, *, of_one: int | None = None) -> None:
        self._free = at_once
        self._of_one = at_once if of_one is None else of_one
        self._taken: Counter[UserId] = Counter()
        self._waiting: dict[UserId, deque[asyncio.Future[None]]] = {}
        self._served: dict[UserId, int] = {}
        """When each of those users last got a slot."""
        self._times = count(1)

    @asynccontextmanager
    async def slot(self, user_id: UserId) -> AsyncGenerator[None]:
        """Waits for the user's turn, and holds a slot during the block."""
        if self._free and self._taken[user_id] < self._of_one:
            self._free -= 1
            self._serve(user_id)
        else:
            await self._turn_of(user_id)
        try:
            yield
        finally:
            self._give_back(user_id)

    def waiting(self, user_id: UserId) -> int:
        """How much of a user's work waits for a slot."""
        return len(self._waiting.get(user_id, ()))

    async def _turn_of(self, user_id: UserId) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it got its turn in the same moment
                self._give_back(user_id)
            raise

    def _give_back(self, user_id: UserId) -> None:
        self._taken[user_id] -= 1
        while allowed := [it for it in self._waiting if self._taken[it] < self._of_one]:
            following = min(allowed, key=lambda it: (self._taken[it], self._served.get(it, 0)))
            turn = self._waiting[following].popleft()
            if not self._waiting[following]:
                del self._waiting[following]
            if not turn.cancelled():  # else who waited has left
                self._serve(following)
                turn.set_result(None)
                break
            self._forget_if_idle(following)
        else:
            self._free += 1
        self._forget_if_idle(user_id)

    def _forget_if_idle(self, user_id: UserId) -> None:
        if not self._taken[user_id] and user_id not in self._waiting:
            self._taken.pop(user_id, None)
            self._served.pop(user_id, None)

    def _serve(self, user_id: UserId) -> None:
        self._taken[user_id] += 1
        self._served[user_id] = next(self._times)
