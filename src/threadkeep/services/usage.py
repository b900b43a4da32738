"""Usage: what model calls have used and cost, and what budgets have left."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date

from threadkeep.domain.errors import Forbidden, InvalidRequest
from threadkeep.domain.ids import AgentId, is_uuid
from threadkeep.domain.ledger import BudgetState, UsageFilter, UsageSum
from threadkeep.domain.user import User
from threadkeep.runtime.spending import Spending
from threadkeep.storage.store import Store

DEFAULT_DAYS = 30
MOST_DAYS = 366
AGENTS_A_PAGE = 200
MOST_AGENTS = 2_000


class Usages:
    """The use cases of usage."""

    def __init__(self, store: Store, spending: Spending) -> None:
        self._store = store
        self._spending = spending

    async def sums(
        self,
        user: User,
        by: Collection[str],
        *,
        first: date | None,
        last: date | None,
        agent_id: str | None,
    ) -> Sequence[UsageSum]:
        """Model calls from the first day to the last, in groups. Only admins group by user: they see all."""
        last = last or date.fromisoformat(self._spending.today)
        first = first or date.fromordinal(max(last.toordinal() - DEFAULT_DAYS + 1, 1))
        if first > last:
            raise InvalidRequest("`from` can't be later than `to`.", param="from")
        if (last - first).days >= MOST_DAYS:
            raise InvalidRequest(f"You can request at most {MOST_DAYS} days at once.", param="from")
        if "user" in by and not user.is_admin:
            raise Forbidden("Only admins can see other users' usage.")
        if agent_id is not None and not (is_uuid(agent_id) and user.may_use(AgentId(agent_id.lower()))):
            return ()
        which = UsageFilter(
            first.isoformat(),
            last.isoformat(),
            None if "user" in by else user.id,
            agent_id.lower() if agent_id else None,
            user.agents,
        )
        return _merged(await self._store.ledger.usage(which, by))

    async def budgets(self, user: User) -> Sequence[BudgetState]:
        """The budgets of a user and of the user's API keys and agents, with what they have left.

        A key that is limited to agents sees only theirs and its own.
        """
        keys = await self._store.keys.of_user(user.id)
        if user.agents is None:
            budgets = self._spending.budgets_of_user(user.id)
        else:
            budgets, keys = [], [it for it in keys if it.id == user.key_id]
        budgets += self._spending.budgets_of_keys(it for it in keys if it.paid_by == it.id)
        after: str | None = None
        for _ in range(0, MOST_AGENTS, AGENTS_A_PAGE):
            page = await self._store.agents.page(user.id, after=after, offset=0, limit=AGENTS_A_PAGE)
            budgets += self._spending.budgets_of_agents(
                agent for agent in page if agent.owner_id == user.id and user.may_use(agent.id)
            )
            if len(page) < AGENTS_A_PAGE:
                break
            after = page[-1].id
        return await self._spending.states(budgets)


def _merged(sums: Sequence[UsageSum]) -> list[UsageSum]:
    """Joins the calls of a group whose price isn't known with the group's others."""
    groups: dict[tuple[str | None, ...], list[UsageSum]] = {}
    for it in sums:
        same = groups.setdefault(tuple(it.group.values()), [])
        if same and it.currency is None:
            same[0] = _added(same[0], it)
        elif same and same[0].currency is None:
            same[0] = _added(it, same[0])
        else:
            same.append(it)
    return [it for group in groups.values() for it in group]


def _added(one: UsageSum, other: UsageSum) -> UsageSum:
    return replace(
        one,
        turns=one.turns + other.turns,
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        estimated=one.estimated or other.estimated,
        unpriced=one.unpriced + other.unpriced,
        reported=one.reported + other.reported,
        reported_cost=one.reported_cost + other.reported_cost,
    )
