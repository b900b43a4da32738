"""Whatever is reserved, charged, given back or lost, in any order: no budget is passed, the sums agree."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.making import ALICE, BOB, NOW
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.message import Usage
from threadkeep.domain.money import BudgetLimits, Cost, Payer, Purpose
from threadkeep.ports.ledger import BudgetState, Charge, Reservation, UsageFilter
from threadkeep.ports.store import Store
from threadkeep.storage.store import open_store

DAYS = ("2026-10-31", "2026-11-01", "2026-11-02")
AGENT = new_uuid()
LIMITS = BudgetLimits(user_day=60, user_month=100, agent_month=150)
ALL = UsageFilter("0001-01-01", "9999-12-31", None)

# What happens to a model call: it begins; it ends with some share of what it reserved as its cost; it isn't
# billed; nobody is left to charge it.
_AMOUNTS = st.integers(1, 70)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.sampled_from([ALICE, BOB]), st.sampled_from(DAYS), _AMOUNTS, _AMOUNTS),
        st.tuples(st.just("charge"), st.integers(0, 20), st.integers(0, 100)),
        st.tuples(st.just("release"), st.integers(0, 20)),
        st.tuples(st.just("lose")),
        st.tuples(st.just("forget")),
    ),
    max_size=25,
)


class Calls:
    """The calls that run, and what they have reserved."""

    def __init__(self, store: Store) -> None:
        self._ledger = store.ledger
        self._open: list[tuple[Reservation, int]] = []

    async def begin(self, user_id: UserId, day: str, least: int, more: int) -> None:
        """Reserves if it fits; the same call made twice has the same place."""
        payer = Payer(user_id, AGENT)  # pyright: ignore[reportArgumentType]
        made = Reservation(
            id=new_uuid(), payer=payer, purpose=Purpose.TITLE, model="m", at=NOW, day=day, least=least,
            most=least + more, currency="USD",
        )  # fmt: skip
        granted = await self._ledger.reserve(made, LIMITS.budgets(payer, day))
        if isinstance(granted, BudgetState):
            assert granted.left < least
        else:
            assert least <= granted <= least + more
            self._open.append((made, granted))

    async def charge(self, number: int, percent: int) -> None:
        """Ends a call, with its answer lost once."""
        if self._open:
            made, granted = self._open.pop(number % len(self._open))
            cost = Cost.of(granted * percent // 100, "USD")
            charge = Charge(
                id=made.id, payer=made.payer, purpose=made.purpose, model="m", usage=Usage(1, 1, cost=cost),
                at=NOW, day=made.day, reservation_id=made.id,
            )  # fmt: skip
            await self._ledger.charge(charge)
            await self._ledger.charge(charge)

    async def release(self, number: int) -> None:
        """Ends a call that was not billed."""
        if self._open:
            await self._ledger.release(self._open.pop(number % len(self._open))[0].id)

    async def lose(self) -> None:
        """The node is lost, and somebody cleans up after it."""
        assert await self._ledger.charge_abandoned(NOW + 1) == len(self._open)
        self._open.clear()

    async def forget(self) -> None:
        """Counts of periods without open calls are forgotten, as after a long time; the ledger has them."""
        await self._ledger.forget_spending("2026-12")

    async def check(self) -> None:
        """Each budget has spent what the ledger says and reserved what is open, and is not passed."""
        for user_id in (ALICE, BOB):
            for day in DAYS:
                payer = Payer(user_id, AGENT)  # pyright: ignore[reportArgumentType]
                for state in await self._ledger.states(LIMITS.budgets(payer, day), "USD"):
                    budget = state.budget
                    held = (
                        granted
                        for made, granted in self._open
                        if budget in LIMITS.budgets(made.payer, made.day)
                    )
                    assert state.reserved == sum(held)
                    assert state.spent == await self._spent(budget.scope, budget.scope_id, budget.period)
                    assert state.spent + state.reserved <= budget.limit

    async def _spent(self, scope: str, scope_id: str, period: str) -> int:
        sums = await self._ledger.usage(ALL, ["day", scope])
        return sum(
            it.cost for it in sums if it.group[scope] == scope_id and str(it.group["day"]).startswith(period)
        )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_no_budget_is_ever_passed_and_what_is_spent_is_in_the_ledger(
    steps: list[tuple[Any, ...]], tmp_path: Path
):
    async def run() -> None:
        store = await open_store(f"sqlite:///{tmp_path}/{new_uuid()}.db")
        try:
            for user_id in (ALICE, BOB):
                await store.users.meet(user_id, NOW)
            calls = Calls(store)
            for name, *arguments in steps:
                await getattr(calls, name)(*arguments)
            await calls.check()
        finally:
            await store.close()

    asyncio.run(run())
