"""How much of something each one has left in a minute, counted in this process."""

from collections.abc import Callable
from dataclasses import dataclass

from threadkeep.domain.caps import MINUTE_S

MOST_KNOWN = 10_000


@dataclass(slots=True)
class _Budget:
    left: float
    at: float


class Rate:
    """How much each one, such as a user, has left, refilled evenly over a minute; 0 means no limit."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._budgets: dict[str, _Budget] = {}

    def take(self, whose: str, count: int = 1) -> float:
        """Takes some and returns 0, or takes none and returns how many seconds to wait."""
        if not self._per_minute:
            return 0
        budget, count = self._budget(whose), min(count, self._per_minute)
        if budget.left < count:
            return (count - budget.left) * MINUTE_S / self._per_minute
        budget.left -= count
        return 0

    def give_back(self, whose: str) -> None:
        """Returns one."""
        if self._per_minute:
            self._budget(whose).left += 1

    def _budget(self, whose: str) -> _Budget:
        now, most = self._clock(), self._per_minute
        if len(self._budgets) >= MOST_KNOWN:  # who is idle for a minute has the full allowance again
            self._budgets = {name: it for name, it in self._budgets.items() if now - it.at < MINUTE_S}
        budget = self._budgets.setdefault(whose, _Budget(most, now))
        refilled = budget.left + (now - budget.at) * most / MINUTE_S
        budget.left, budget.at = min(refilled, most), now
        return budget
