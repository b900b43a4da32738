"""Whatever is reserved, charged, given back or lost, in any order: no budget is passed, the sums agree."""

import asyncio
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.making import NOW
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.ledger import BudgetState, Charge, Reservation
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Budget, BudgetLimits, BudgetScope, Cost, Payer, Purpose
from threadkeep.storage.store import Store, open_store

DAYS = ("2026-10-31", "2026-11-01", "2026-11-02")
LIMITS = (
    BudgetLimits(user_day=60, user_month=100, agent_month=150),
    BudgetLimits(user_month=100),
    BudgetLimits(agent_month=150),
    BudgetLimits(),
)
"""Budgets come and go between the calls."""

# What happens to a model call: it begins; it ends with some share of what it reserved as its cost; it isn't
# billed; nobody is left to charge it. And to its user.
_AMOUNTS = st.integers(1, 70)
_USERS = st.integers(0, 1)
_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("begin"), _USERS, st.sampled_from(DAYS), st.sampled_from(LIMITS), _AMOUNTS, _AMOUNTS
        ),
        st.tuples(st.just("charge"), st.integers(0, 20), st.integers(0, 100)),
        st.tuples(st.just("release"), st.integers(0, 20)),
        st.tuples(st.just("lose")),
        st.tuples(st.just("forget")),
        st.tuples(st.just("delete"), _USERS),
        st.tuples(st.just("move"), _USERS),
    ),
    max_size=25,
)


class Calls:
    """The calls that run, what they have reserved, and what was paid."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = store.ledger
        self._users = [UserId(f"user {new_uuid()}") for _ in range(2)]
        self._agent = AgentId(new_uuid())
        self._open: list[tuple[Reservation, list[Budget], int]] = []
        self._paid = Counter[tuple[str, str, str]]()

    async def meet(self) -> None:
        """Makes the users known."""
        for user_id in self._users:
            await self._store.users.meet(user_id, NOW)

    async def begin(self, user: int, day: str, limits: BudgetLimits, least: int, more: int) -> None:
        """Reserves if it fits; a call without budgets reserves nothing."""
        payer = Payer(self._users[user], self._agent)
        budgets = limits.budgets(payer, day)
        made = Reservation(
            id=new_uuid(), payer=payer, purpose=Purpose.TITLE, model="m", at=NOW, day=day, least=least,
            most=least + more, currency="USD",
        )  # fmt: skip
        granted = await self._ledger.reserve(made, budgets) if budgets else least
        if isinstance(granted, BudgetState):
            assert granted.left < least
        else:
            assert least <= granted <= least + more
            self._open.append((made, budgets, granted))

    async def charge(self, number: int, percent: int) -> None:
        """Ends a call, with its answer lost once."""
        if self._open:
            made, _, granted = self._open.pop(number % len(self._open))
            cost = granted * percent // 100
            charge = Charge(
                id=made.id, payer=made.payer, purpose=made.purpose, model="m",
                usage=Usage(1, 1, cost=Cost.of(cost, "USD")), at=NOW, day=made.day, reservation_id=made.id,
            )  # fmt: skip
            await self._ledger.charge(charge)
            await self._ledger.charge(charge)
            self._pay(made, cost)

    def _pay(self, made: Reservation, cost: int) -> None:
        for budget in _all_budgets(made.payer, made.day):
            self._paid[budget.scope, budget.scope_id, budget.period] += cost

    async def release(self, number: int) -> None:
        """Ends a call that was not billed."""
        if self._open:
            await self._ledger.release(self._open.pop(number % len(self._open))[0].id)

    async def lose(self) -> None:
        """The node is lost, and somebody cleans up after it."""
        lost = [it for it in self._open if it[1]]
        assert len(await self._ledger.charge_abandoned(NOW + 1)) == len(lost)
        for made, _, granted in lost:
            self._pay(made, granted)
        self._open.clear()

    async def forget(self) -> None:
        """Nothing of the last month and of this one is forgotten."""
        await self._ledger.forget_spending("2026-11-30")

    async def delete(self, user: int) -> None:
        """A user goes while calls run, and comes again: the budgets hold. Nobody charges those calls."""
        user_id = self._users[user]
        for made, budgets, granted in self._open:
            for budget in budgets:
                if made.payer.user_id == user_id and budget.scope is BudgetScope.USER:
                    self._paid[budget.scope, budget.scope_id, budget.period] += granted
        self._open = [it for it in self._open if it[0].payer.user_id != user_id]
        await self._store.users.delete(user_id, NOW)
        await self.meet()

    async def move(self, giver: int) -> None:
        """One user's calls become the other's, who may so pass a budget; those that run end first."""
        one, other = self._users[giver], self._users[1 - giver]
        while self._open:
            await self.charge(0, 50)
        before = [await self._spent(it, day) for day in DAYS for it in (one, other)]
        await self._store.whole_conversations.reassign(one, other, NOW, alone=True)
        after = [await self._spent(it, day) for day in DAYS for it in (one, other)]
        assert [sum(before[at : at + 2]) for at in (0, 2, 4)] == [sum(after[at : at + 2]) for at in (0, 2, 4)]
        self._users = [UserId(f"user {new_uuid()}") for _ in range(2)]
        await self.meet()

    async def _spent(self, user_id: UserId, day: str) -> int:
        budgets = BudgetLimits(user_day=1).budgets(Payer(user_id, None), day)
        return sum(it.spent for it in await self._ledger.states(budgets, "USD"))

    async def check(self) -> None:
        """Each budget has spent what was paid and reserved what is open."""
        for user_id in self._users:
            for day in DAYS:
                for state in await self._ledger.states(_all_budgets(Payer(user_id, self._agent), day), "USD"):
                    budget = state.budget
                    key = budget.scope, budget.scope_id, budget.period
                    held = (
                        granted
                        for _, budgets, granted in self._open
                        if key in {(it.scope, it.scope_id, it.period) for it in budgets}
                    )
                    assert (state.spent, state.reserved) == (self._paid[key], sum(held))


def _all_budgets(payer: Payer, day: str) -> list[Budget]:
    return LIMITS[0].budgets(payer, day)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_no_budget_is_ever_passed_and_what_is_spent_is_what_was_paid(
    steps: list[tuple[Any, ...]], database_url: str
):
    async def run() -> None:
        store = await open_store(database_url)
        try:
            calls = Calls(store)
            await calls.meet()
            for name, *arguments in steps:
                await getattr(calls, name)(*arguments)
            await calls.check()
        finally:
            await store.ledger.charge_abandoned(NOW + 1)  # the examples share a database
            await store.close()

    asyncio.run(run())
