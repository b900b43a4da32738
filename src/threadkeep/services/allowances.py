"""How many turns a user may have: at once, and in a minute. Counted by each node for itself."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import UserId

MINUTE_S = 60.0
MOST_USERS = 10_000


@dataclass(slots=True)
class _Budget:
    left: float
    at: float


class Allowances:
    """What is left to each user. 0 means no limit."""

    def __init__(self, *, at_once: int, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_once = at_once
        self._per_minute = per_minute
        self._clock = clock
        self._budgets: dict[UserId, _Budget] = {}

    def take(self, user_id: UserId, running: int) -> None:
        """Takes one turn of the user's, of whom so many run already; refuses one too many."""
        if self._at_once and running >= self._at_once:
            raise RateLimited(
                f"{running} of your turns are running, and more may not at once. Wait for one to end.",
                details={"running": running, "most": self._at_once},
            )
        if not self._per_minute:
            return
        budget = self._budget(user_id)
        if budget.left < 1:
            wait_s = math.ceil((1 - budget.left) * MINUTE_S / self._per_minute)
            raise RateLimited(
                f"You may begin {self._per_minute} turns a minute. Try again in {wait_s} s.",
                details={"perMinute": self._per_minute},
                retry_after_s=wait_s,
            )
        budget.left -= 1

    def give_back(self, user_id: UserId) -> None:
        """Gives back what was taken for a turn that could not be begun."""
        if self._per_minute:
            self._budget(user_id).left += 1

    def _budget(self, user_id: UserId) -> _Budget:
        now = self._clock()
        if len(self._budgets) >= MOST_USERS:  # those who have been quiet for a minute have it all again
            self._budgets = {name: it for name, it in self._budgets.items() if now - it.at < MINUTE_S}
        budget = self._budgets.setdefault(user_id, _Budget(self._per_minute, now))
        refilled = budget.left + (now - budget.at) * self._per_minute / MINUTE_S
        budget.left, budget.at = min(refilled, self._per_minute), now
        return budget
