"""Limits on a user's turns and uploads, counted in this process: for a node alone with its database."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from threadkeep.clock import monotonic
from threadkeep.domain.caps import MINUTE_S, TurnCaps
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.ports.allowances import HELD_S, ReplyPlace

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


class LocalAllowances:
    """The remaining allowance of each user."""

    def __init__(self, caps: TurnCaps, clock: Callable[[], float] = monotonic) -> None:
        self._caps = caps
        self._turns = Rate(caps.per_minute, clock)
        self._uploads = Rate(caps.uploads_per_minute, clock)
        self._writes = Rate(caps.writes_per_minute, clock)
        self._clock = clock
        self._replies: dict[ReplyPlace, float] = {}
        """Until when each reply outside turns has its place."""

    async def take_turn(
        self, user_id: UserId, turn_id: TurnId, running_here: int, *, after: TurnId | None = None
    ) -> None:
        """Reserves a turn for the user, given the number already running; raises RateLimited at the limit."""
        self._check_at_once(user_id, running_here)
        await self.take_call(user_id)

    async def give_turn_back(self, user_id: UserId, turn_id: TurnId) -> None:
        """Returns the reservation of a turn that couldn't start."""
        self._turns.give_back(user_id)

    async def take_call(self, user_id: UserId) -> None:
        """Reserves one of the user's calls per minute."""
        if wait_s := self._turns.take(user_id):
            raise self._caps.too_many_a_minute(wait_s=wait_s)

    async def take_reply(self, place: ReplyPlace, running_here: int) -> None:
        """Reserves a reply outside any turn."""
        self._check_at_once(place.user_id, running_here)
        await self.take_call(place.user_id)
        self._replies[place] = self._clock() + HELD_S

    async def renew_replies(self, places: Collection[ReplyPlace]) -> None:
        """Gives replies their places for another while."""
        until = self._clock() + HELD_S
        self._replies |= {place: until for place in places if place in self._replies}

    async def give_reply_back(self, place: ReplyPlace) -> None:
        """Frees the place of a reply that has ended."""
        self._replies.pop(place, None)

    def _check_at_once(self, user_id: UserId, turns: int) -> None:
        now = self._clock()
        self._replies = {place: until for place, until in self._replies.items() if until > now}
        replies = sum(place.user_id == user_id for place in self._replies)
        if self._caps.at_once and turns + replies >= self._caps.at_once:
            raise self._caps.too_many_at_once()

    async def take_uploads(self, user_id: UserId, count: int) -> None:
        """Takes files from those that the user may upload per minute."""
        if wait_s := self._uploads.take(user_id, count):
            raise self._caps.too_many_uploads(wait_s=wait_s)

    async def take_write(self, user_id: UserId) -> None:
        """Takes one of the things that the user may create per minute besides turns."""
        if wait_s := self._writes.take(user_id):
            raise self._caps.too_many_writes(wait_s=wait_s)
