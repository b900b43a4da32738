"""Usage of a user's turns."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from threadkeep.clock import Clock
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, is_uuid
from threadkeep.domain.times import time_in
from threadkeep.domain.user import User
from threadkeep.ports.store import Store
from threadkeep.ports.turns import DayUsage

DEFAULT_DAYS = 30
MOST_DAYS = 366
DAY = 24 * 60 * 60 * 1000


class Usages:
    """The use cases of usage."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def by_day(
        self, user: User, *, first: date | None, last: date | None, agent_id: str | None
    ) -> Sequence[DayUsage]:
        """Tokens and turns for each agent and day, from the first day to the last (UTC)."""
        last = last or time_in(self._clock()).date()
        since, until = _begin(first) if first else _begin(last) - (DEFAULT_DAYS - 1) * DAY, _begin(last) + DAY
        if since >= until:
            raise InvalidRequest("`from` can't be later than `to`.", param="from")
        if until - since > MOST_DAYS * DAY:
            raise InvalidRequest(f"You can request at most {MOST_DAYS} days at once.", param="from")
        if agent_id is not None and not is_uuid(agent_id):
            return ()
        wanted = AgentId(agent_id.lower()) if agent_id else None
        used = await self._store.turns.usage(user.id, wanted, since=since, until=until)
        return [it for it in used if user.may_use(it.agent_id)]


def _begin(day: date) -> int:
    """The first millisecond of a day in UTC."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000
