"""Limits on a user's turns, counted in this process: for a node that has its database to itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from threadkeep.domain.caps import MINUTE_S, TurnCaps
from threadkeep.domain.ids import TurnId, UserId

MOST_USERS = 10_000


@dataclass(slots=True)
class _Budget:
    left: float
    at: float


class LocalAllowances:
    """The remaining allowance of each user."""

    def __init__(self, caps: TurnCaps, clock: Callable[[], float] = time.monotonic) -> None:
        self._caps = caps
        self._clock = clock
        self._budgets: dict[UserId, _Budget] = {}

    async def take_turn(
        self, user_id: UserId, turn_id: TurnId, running_here: int, *, after: TurnId | None = None
    ) -> None:
        """Reserves a turn for the user, given the number already running; raises RateLimited at the limit."""
        others = running_here if after is None else running_here - 1
        if self._caps.at_once and others >= self._caps.at_once:
            raise self._caps.too_many_at_once()
        await self.take_call(user_id)

    async def give_turn_back(self, user_id: UserId, turn_id: TurnId) -> None:
        """Returns the reservation of a turn that couldn't start."""
        if self._caps.per_minute:
            self._budget(user_id).left += 1

    async def take_call(self, user_id: UserId) -> None:
        """Reserves one of the user's calls per minute."""
        if not self._caps.per_minute:
            return
        budget = self._budget(user_id)
        if budget.left < 1:
            raise self._caps.too_many_a_minute(wait_s=(1 - budget.left) * MINUTE_S / self._caps.per_minute)
        budget.left -= 1

    def _budget(self, user_id: UserId) -> _Budget:
        now, most = self._clock(), self._caps.per_minute
        if len(self._budgets) >= MOST_USERS:  # users idle for a minute have their full allowance again
            self._budgets = {name: it for name, it in self._budgets.items() if now - it.at < MINUTE_S}
        budget = self._budgets.setdefault(user_id, _Budget(most, now))
        refilled = budget.left + (now - budget.at) * most / MINUTE_S
        budget.left, budget.at = min(refilled, most), now
        return budget
