"""The ledger's contract: every test runs on every database."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import psycopg
import pytest

from tests.making import (
    ALICE,
    BOB,
    NOW,
    chunk_of,
    keep_agent,
    keep_begun,
    keep_conversation,
    make_agent,
    opened,
)
from threadkeep.domain.agent import Agent, AgentCode, Code
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import UsageReported
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.ledger import BudgetState, Charge, Reservation, UsageFilter, UsageSum
from threadkeep.domain.message import Usage
from threadkeep.domain.money import (
    Budget,
    BudgetLimits,
    BudgetScope,
    Cost,
    Payer,
    Purpose,
    nested_payer,
)
from threadkeep.domain.turn import Lease, Turn, TurnCode
from threadkeep.storage.database.connector import Database, Plan, Query, Rows, Statement
from threadkeep.storage.database.postgres import URGENT_CONNECTIONS
from threadkeep.storage.spending.ledger import SqlLedger
from threadkeep.storage.store import Store
from threadkeep.testing.waiting import PATIENCE_S

T = TypeVar("T")

DAY, MONTH = "2026-11-17", "2026-11"
ALL_DAYS = UsageFilter("0001-01-01", "9999-12-31", None)
KEY = new_uuid()
FORMER = Statement("SELECT period, spent FROM tk_former_spending ORDER BY period")
TAKE_OVER = Statement("UPDATE tk_turns SET fence = fence + 1 WHERE id = :id")


class Listening:
    """Notes the statements that a ledger runs."""

    def __init__(self, database: Database, statements: list[str]) -> None:
        self._database = database
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def fetch(self, query: Query) -> Rows:
        self._statements.append(query.statement.postgres)
        return await self._database.fetch(query)

    async def write(self, plan: Callable[[], Plan[T]], **options: bool) -> T:
        return await self._database.write(lambda: self._listen(plan()), **options)

    def _listen(self, plan: Plan[T]) -> Plan[T]:
        try:
            query = next(plan)
            while True:
                self._statements.append(query.statement.postgres)
                query = plan.send((yield query))
        except StopIteration as stop:
            return cast("T", stop.value)


def charge(payer: Payer, cost: int | None, **changes: Any) -> Charge:
    id_ = new_uuid()
    usage = Usage(10, 5, cost=None if cost is None else Cost.of(cost, "USD"))
    made = Charge(
        id=id_,
        payer=payer,
        purpose=Purpose.TITLE,
        model="default/some",
        usage=usage,
        at=NOW,
        day=DAY,
        reservation_id=id_,
    )
    return replace(made, **changes)


def reservation(payer: Payer, most: int, *, least: int | None = None, **changes: Any) -> Reservation:
    made = Reservation(
        id=new_uuid(),
        payer=payer,
        purpose=Purpose.TITLE,
        model="default/some",
        at=NOW,
        day=DAY,
        least=most if least is None else least,
        most=most,
        currency="USD",
    )
    return replace(made, **changes)


def of(reserved: Reservation, cost: int | None) -> Charge:
    """The charge of a call outside a turn."""
    return charge(reserved.payer, cost, id=reserved.id, reservation_id=reserved.id)


async def payer_of(store: Store, agent: Agent | None = None, user_id: UserId = ALICE) -> Payer:
    await store.users.meet(user_id, NOW)
    return Payer(user_id, (agent or await keep_agent(store)).id)


async def total(store: Store) -> tuple[int, int]:
    """How many calls are in the ledger, and what they cost."""
    sums = await store.ledger.usage(ALL_DAYS, ())
    return sum(it.calls for it in sums), sum(it.cost for it in sums)


async def state(store: Store, budget: Budget) -> tuple[int, int]:
    (found,) = await store.ledger.states([budget], "USD")
    return found.spent, found.reserved


async def test_a_call_is_charged_once_however_often_it_is_tried(store: Store):
    payer = await payer_of(store)
    call = charge(payer, 7)
    await asyncio.gather(*(store.ledger.charge(call) for _ in range(3)))
    assert await total(store) == (1, 7)


async def test_usage_is_summed_by_what_is_asked_for(store: Store):
    payer = await payer_of(store)
    keyed = replace(payer, key_id=KEY)
    other = await payer_of(store, user_id=BOB)
    await store.ledger.charge(charge(payer, 7, purpose=Purpose.TURN, is_first=True))
    await store.ledger.charge(charge(keyed, 8, model="default/other"))
    await store.ledger.charge(charge(payer, None, day="2026-11-18"))
    await store.ledger.charge(charge(other, 9))

    def found(sums: Any) -> list[tuple[dict[str, str | None], int, int]]:
        return [(dict(it.group), it.calls, it.cost) for it in sums]

    own = replace(ALL_DAYS, user_id=ALICE)
    assert found(await store.ledger.usage(own, ["day", "model"])) == [
        ({"day": DAY, "model": "default/other"}, 1, 8),
        ({"day": DAY, "model": "default/some"}, 1, 7),
        ({"day": "2026-11-18", "model": "default/some"}, 1, 0),
    ]
    by_user = await store.ledger.usage(replace(ALL_DAYS, last_day=DAY), ["user"])
    assert sorted(found(by_user), key=str) == [({"user": ALICE}, 2, 15), ({"user": BOB}, 1, 9)]
    keys = await store.ledger.usage(replace(own, last_day=DAY), ["key"])
    assert {it.group["key"]: it.cost for it in keys} == {None: 7, KEY: 8}
    with_agent = replace(ALL_DAYS, agent_id=other.agent_id)
    assert found(await store.ledger.usage(with_agent, ["purpose"])) == [({"purpose": "title"}, 1, 9)]
    (day,) = await store.ledger.usage(replace(own, agent_id=payer.agent_id, last_day=DAY), [])
    assert day == UsageSum({}, "USD", 1, 2, 20, 10, 0, 0, estimated=False, cost=15, unpriced=0)


async def test_a_cost_that_a_program_reports_is_kept_and_counts_in_no_budget(store: Store):
    payer = await payer_of(store)
    said = Cost.of(9 * 10**18, "USD")
    for ours in (None, None, 7):
        await store.ledger.charge(charge(payer, ours, is_reported=True, reported_cost=said))
    await store.ledger.charge(charge(payer, 8))
    (all_,) = await store.ledger.usage(ALL_DAYS, [])
    assert (all_.calls, all_.cost, all_.unpriced, all_.reported) == (4, 15, 2, 3)
    assert all_.reported_cost == 27 * 10**18
    budget = Budget(BudgetScope.USER, payer.user_id, DAY, 100)
    assert await state(store, budget) == (15, 0)


async def test_sums_beyond_the_numbers_of_the_database_are_exact(store: Store):
    payer = await payer_of(store)
    for _ in range(3):
        await store.ledger.charge(charge(payer, 9 * 10**18 + 1))
    assert await total(store) == (3, 27 * 10**18 + 3)


async def test_a_reservation_counts_against_every_budget_until_its_call_is_charged(store: Store):
    payer = replace(await payer_of(store), key_id=KEY)
    limits = BudgetLimits(user_day=100, user_month=100, agent_month=100, key_month=100)
    budgets = limits.budgets(payer, DAY)
    reserved = reservation(payer, 60)
    assert await store.ledger.reserve(reserved, budgets) == 60
    assert [await state(store, it) for it in budgets] == [(0, 60)] * 4
    await store.ledger.charge(of(reserved, 41))
    await store.ledger.charge(of(reserved, 41))
    assert [await state(store, it) for it in budgets] == [(41, 0)] * 4


async def test_what_does_not_fit_is_refused_and_reserves_nothing(store: Store):
    payer = await payer_of(store)
    day, month = (
        Budget(BudgetScope.USER, ALICE, DAY, 50),
        Budget(BudgetScope.USER, ALICE, MONTH, 100),
    )
    assert await store.ledger.reserve(reservation(payer, 30), [month, day]) == 30
    refused = await store.ledger.reserve(reservation(payer, 30), [month, day])
    assert refused == BudgetState(day, spent=0, reserved=30)
    assert await state(store, month) == (0, 30)


async def test_a_reservation_takes_what_is_left_if_that_is_enough(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    await store.ledger.charge(charge(payer, 30))
    assert await store.ledger.reserve(reservation(payer, 1000, least=70), [budget]) == 70
    refused = await store.ledger.reserve(reservation(payer, 1000, least=1), [budget])
    assert isinstance(refused, BudgetState) and refused.left == 0


async def test_what_was_not_billed_is_given_back(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.AGENT, str(payer.agent_id), MONTH, 100)
    reserved = reservation(payer, 60)
    await store.ledger.reserve(reserved, [budget])
    await store.ledger.release(reserved.id)
    await store.ledger.release(reserved.id)
    assert await state(store, budget) == (0, 0)


async def test_a_lowered_budget_lets_running_calls_end_and_refuses_the_next(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    reserved = reservation(payer, 60)
    await store.ledger.reserve(reserved, [budget])
    lowered = replace(budget, limit=10)
    assert isinstance(await store.ledger.reserve(reservation(payer, 1), [lowered]), BudgetState)
    await store.ledger.charge(of(reserved, 9))
    assert await store.ledger.reserve(reservation(payer, 1), [lowered]) == 1


async def test_a_budget_that_comes_back_knows_what_was_spent_without_it(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    await store.ledger.charge(charge(payer, 10))
    assert await state(store, budget) == (10, 0)
    await store.ledger.charge(charge(payer, 20))
    assert await state(store, budget) == (30, 0)


async def test_a_new_budget_misses_no_call_that_is_charged_meanwhile(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 10**9)
    calls = [charge(payer, 1) for _ in range(40)]
    half = len(calls) // 2
    await asyncio.gather(
        *(store.ledger.charge(it) for it in calls[:half]),
        store.ledger.states([budget], "USD"),
        *(store.ledger.charge(it) for it in calls[half:]),
    )
    assert await state(store, budget) == (40, 0)


@pytest.mark.usefixtures("crowded")
async def test_parallel_reservations_never_pass_a_budget(store: Store):
    payer = await payer_of(store)
    budgets = BudgetLimits(user_day=1000, user_month=1000, agent_month=1000).budgets(payer, DAY)

    async def call() -> bool:
        reserved = reservation(payer, 100)
        granted = await store.ledger.reserve(reserved, budgets)
        if isinstance(granted, BudgetState):
            return False
        await store.ledger.charge(of(reserved, 100))
        return True

    made = await asyncio.gather(*(call() for _ in range(50)))
    assert sum(made) == 10
    assert [await state(store, it) for it in budgets] == [(1000, 0)] * 3


async def running_turn(store: Store) -> tuple[Turn, Payer]:
    agent = await keep_agent(store)
    begun = (await keep_conversation(store, agent)).begin_turn("Hello", NOW, model="default/some")
    await keep_begun(store, begun)
    return begun.turn, Payer(ALICE, agent.id)


async def test_a_call_is_charged_with_its_usage_event_and_settles_what_its_turn_reserved(store: Store):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    reserved = reservation(payer, 60, id=turn.id, purpose=Purpose.TURN, fence=1)
    await store.ledger.reserve(reserved, [budget])
    chunk = chunk_of(turn.id, 2, UsageReported(10, 5))
    chunk = replace(chunk, charges=(charge(payer, 41, reservation_id=turn.id),))
    assert await store.log.append([(chunk, 1)]) == {turn.id}
    assert await store.log.append([(chunk, 1)]) == {turn.id}  # the first reply was lost
    assert await state(store, budget) == (41, 0)
    assert await total(store) == (1, 41)


async def test_a_turn_of_another_node_can_neither_reserve_nor_charge(store: Store):
    (turn, payer), (other, _) = await running_turn(store), await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    with pytest.raises(StorageConflict):
        await store.ledger.reserve(reservation(payer, 60, id=turn.id, fence=2), [budget])
    lost, kept = (
        replace(chunk_of(it.id, 2, UsageReported(10, 5)), charges=(charge(payer, 41, reservation_id=it.id),))
        for it in (turn, other)
    )
    assert await store.log.append([(lost, 2), (kept, 1)]) == {other.id}
    assert await total(store) == (1, 41)


async def test_a_call_made_again_elsewhere_replaces_what_its_turn_reserved(store: Store):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    for most in (60, 80):
        made = reservation(payer, most, id=turn.id, purpose=Purpose.TURN, fence=1)
        assert await store.ledger.reserve(made, [budget]) == most
    assert await state(store, budget) == (0, 80)


async def test_what_nobody_is_left_to_charge_is_charged_in_full(store: Store):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    lost, new = reservation(payer, 30), reservation(payer, 20, at=NOW + 10)
    running = reservation(payer, 10, id=turn.id, purpose=Purpose.TURN, fence=1)
    for it in (lost, new, running):
        await store.ledger.reserve(it, [budget])
    assert [it.id for it in await store.ledger.charge_abandoned(NOW + 5)] == [lost.id]
    assert await store.ledger.charge_abandoned(NOW + 5) == []
    assert await state(store, budget) == (30, 30)
    await store.ledger.charge(of(lost, 5))  # it was only slow, and is charged already
    assert await state(store, budget) == (30, 30)


async def test_purging_a_conversation_does_not_reset_a_budget(store: Store):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    chunk = chunk_of(turn.id, 2, UsageReported(10, 5))
    chunk = replace(chunk, charges=(charge(payer, 41, reservation_id=turn.id),))
    await store.log.append([(chunk, 1)])
    reserved = reservation(payer, 9, id=turn.id, purpose=Purpose.TURN, fence=1)
    await store.ledger.reserve(reserved, [budget])
    assert await store.conversations.purge(ALICE, turn.conversation_id)
    assert await state(store, budget) == (41, 9)
    await store.ledger.charge_abandoned(NOW + 1)
    assert await state(store, budget) == (50, 0)


async def test_a_deleted_user_leaves_nothing_reserved_and_no_usage(store: Store):
    agent = await keep_agent(store, BOB)
    payer = await payer_of(store, agent)
    agents, users = BudgetLimits(user_month=100, agent_month=100).budgets(payer, DAY)
    await store.ledger.charge(charge(payer, 7))
    await store.ledger.reserve(reservation(payer, 60), [agents, users])
    await store.users.delete(ALICE, NOW)
    assert await total(store) == (0, 0)
    assert await state(store, agents) == (7, 0)
    assert (await state(store, users))[1] == 0


async def test_what_a_user_has_spent_outlives_them_until_the_period_is_over(store: Store, database: Database):
    day, month = BudgetLimits(user_day=100, user_month=100).budgets(Payer(ALICE, None), DAY)[::-1]
    for _ in range(2):
        payer = await payer_of(store)
        await store.ledger.charge(charge(payer, 7))
        await store.ledger.charge(charge(payer, 5, day="2026-11-02"))
        await store.ledger.reserve(reservation(payer, 3), [month])  # of a call that still runs
        await store.users.delete(ALICE, NOW)
    assert [await state(store, it) for it in (day, month)] == [(14, 0), (30, 0)]
    refused = await store.ledger.reserve(reservation(await payer_of(store), 71), [month])
    assert refused == BudgetState(month, spent=30, reserved=0)
    await store.ledger.charge(charge(await payer_of(store), 1))
    assert [await state(store, it) for it in (day, month)] == [(15, 0), (31, 0)]
    assert ALICE not in str(await database.fetch(FORMER()))
    await store.ledger.forget_spending("2026-11-18")
    assert await database.fetch(FORMER()) == [("2026-11", 30)]
    await store.ledger.forget_spending("2026-12-01")
    assert await database.fetch(FORMER()) == []


async def test_what_a_user_has_spent_and_reserved_moves_with_their_calls(store: Store):
    payer, other = await payer_of(store), await payer_of(store, user_id=BOB)
    budget = Budget(BudgetScope.USER, BOB, MONTH, 100)
    reserved = reservation(payer, 20)
    await store.ledger.charge(charge(payer, 7))
    await store.ledger.charge(charge(other, 5))
    await store.ledger.reserve(reserved, [replace(budget, scope_id=ALICE)])
    await store.whole_conversations.reassign(ALICE, BOB, NOW, alone=True)
    assert await state(store, budget) == (12, 20)
    await store.ledger.charge(replace(of(reserved, 9), payer=other))
    assert await state(store, budget) == (21, 0)
    assert await store.ledger.open_reservations() == 0


async def test_periods_long_past_are_forgotten_unless_something_is_reserved(store: Store):
    payer = await payer_of(store)
    (budget,) = BudgetLimits(user_month=100).budgets(payer, DAY)
    reserved = reservation(payer, 1)
    await store.ledger.reserve(reserved, [budget])
    await store.ledger.charge(charge(payer, 7))
    assert await store.ledger.forget_spending("2026-12-31") == 0
    assert await store.ledger.forget_spending("2027-01-01") == 2  # the agent's, and the user's day
    await store.ledger.release(reserved.id)
    assert await store.ledger.forget_spending("2027-01-01") == 1


@pytest.mark.parametrize("taken_over", ["before it reserves", "after it reserved"])
async def test_a_node_that_lost_a_turn_does_not_free_what_is_reserved_for_it(
    store: Store, database: Database, taken_over: str
):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    made = reservation(payer, 60, id=turn.id, purpose=Purpose.TURN, fence=1)
    await store.ledger.reserve(made, [budget])
    await database.execute(TAKE_OVER(id=turn.id))
    if taken_over == "after it reserved":
        await store.ledger.reserve(replace(made, fence=2, most=50, least=50), [budget])
    held = await state(store, budget)
    await store.ledger.release(turn.id, 1)
    await store.ledger.release(turn.id)
    assert await state(store, budget) == held
    await store.ledger.release(turn.id, 2)
    assert await state(store, budget) == ((0, 0) if taken_over == "after it reserved" else held)


async def test_a_charge_settles_what_was_reserved_even_if_nothing_else_is_counted(store: Store):
    payer = await payer_of(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    reserved = reservation(payer, 60)
    await store.ledger.reserve(reserved, [budget])
    await store.ledger.charge(of(reserved, None))
    assert await state(store, budget) == (0, 0)
    assert await store.ledger.charge_abandoned(NOW + 1) == []


async def test_the_first_call_of_a_period_takes_the_statements_of_any_call(store: Store, database: Database):
    """Nothing is summed up, and no table is locked: the ledger isn't even read."""
    payer = replace(await payer_of(store), key_id=KEY)
    limits = BudgetLimits(user_day=100, user_month=100, agent_month=100, key_month=100)
    await store.ledger.charge(charge(payer, 1))
    statements: list[list[str]] = []
    for day in (DAY, DAY, "2026-11-18", "2026-12-01"):
        run: list[str] = []
        ledger = SqlLedger(cast("Database", Listening(database, run)), b"")
        assert await ledger.reserve(reservation(payer, 1, day=day), limits.budgets(payer, day)) == 1
        await ledger.states(limits.budgets(payer, day), "USD")
        statements.append(run)
    assert statements == [statements[0]] * 4
    assert not any("tk_ledger" in it or "LOCK TABLE" in it for it in statements[0])


@pytest.mark.usefixtures("crowded")
async def test_reservations_whose_budgets_change_meanwhile_never_wait_for_each_other(store: Store):
    """One that is made again gives back and takes in one ordered step."""
    payer = replace(await payer_of(store), key_id=KEY)
    limits = [
        BudgetLimits(user_day=10**6),
        BudgetLimits(agent_month=10**6, user_month=10**6),
        BudgetLimits(key_month=10**6, user_day=10**6, user_month=10**6),
    ]

    async def call(number: int) -> None:
        made = reservation(payer, 1)
        for at in range(4):
            budgets = limits[(number + at) % len(limits)].budgets(payer, DAY)
            assert await store.ledger.reserve(made, budgets) == 1
        await store.ledger.charge(of(made, 1))

    await asyncio.gather(*(call(number) for number in range(12)))
    (user,) = BudgetLimits(user_month=100).budgets(payer, DAY)
    assert await state(store, user) == (12, 0)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_leases_are_renewed_while_reservations_wait(store: Store, database_url: str):
    turn, payer = await running_turn(store)
    budget = Budget(BudgetScope.USER, ALICE, MONTH, 100)
    await store.ledger.charge(charge(payer, 1))
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT 1 FROM tk_spending FOR UPDATE")
        waiting = [
            asyncio.create_task(store.ledger.reserve(reservation(payer, 1), [budget]))
            for _ in range(URGENT_CONNECTIONS + 1)
        ]
        node_id = (await (await other.execute("SELECT node_id FROM tk_turns")).fetchall())[0][0]
        async with asyncio.timeout(PATIENCE_S):
            assert await store.log.renew(node_id, [turn.id], 4000) == {turn.id: False}
        assert not any(it.done() for it in waiting)
        await other.rollback()
        assert await asyncio.gather(*waiting) == [1] * len(waiting)


async def begin_turn_of_program(store: Store) -> tuple[Turn, Payer]:
    """A turn whose node is gone, and who pays for its calls."""
    agent = await store.agents.declare(make_agent(None, code=AgentCode("orders", 1)))
    assert agent is not None
    payer = await payer_of(store, agent)
    begun = (await keep_conversation(store, agent)).begin_turn("?", NOW)
    turn = replace(begun.turn, code=TurnCode("orders", 1))
    await store.turns.begin(opened(replace(begun, turn=turn), Lease("a-node", 1, -1)))
    return turn, payer


async def test_turn_of_a_program_reserves_for_several_calls_at_once(store: Store):
    turn, payer = await begin_turn_of_program(store)
    made: dict[str, Any] = {"purpose": Purpose.TURN, "turn_id": turn.id, "fence": 1}
    budget = Budget(BudgetScope.USER, ALICE, DAY, 100)
    calls = [reservation(payer, 40, **made) for _ in range(3)]
    assert [await store.ledger.reserve(it, [budget]) for it in calls[:2]] == [40, 40]
    assert isinstance(await store.ledger.reserve(calls[2], [budget]), BudgetState)
    await store.ledger.release(calls[0].id, 1)
    assert await state(store, budget) == (0, 40)
    await store.ledger.charge(charge(payer, 7, purpose=Purpose.TURN, reservation_id=calls[1].id))
    assert await state(store, budget) == (7, 0)
    # It still runs: nothing of it is abandoned.
    assert await store.ledger.reserve(calls[2], [budget]) == 40
    assert await store.ledger.charge_abandoned(NOW + 1) == []


async def test_calls_that_a_lost_node_reserved_are_charged_by_the_node_that_takes_the_turn_over(store: Store):
    turn, payer = await begin_turn_of_program(store)
    budget = Budget(BudgetScope.USER, ALICE, DAY, 200)
    made: dict[str, Any] = {"purpose": Purpose.TURN, "turn_id": turn.id}
    lost = [reservation(payer, 40, fence=1, **made) for _ in range(2)]
    for it in lost:
        await store.ledger.reserve(it, [budget])
    assert await store.log.adopt(turn.id, Lease("another", 1, 10**9), alone=False, codes=[Code("orders", 1)])
    for it in lost:  # the lost node is merely late
        await store.ledger.release(it.id, 1)
        with pytest.raises(StorageConflict):
            await store.ledger.reserve(replace(it, id=new_uuid()), [budget])
    ours = reservation(payer, 30, fence=2, **made)
    await store.ledger.reserve(ours, [budget])
    known = Usage(1, 2, cost=Cost.of(3, "USD"))
    charges = await store.ledger.charge_lost(turn.id, 2, {lost[0].id: known})
    assert {it.id: it.usage.cost and it.usage.cost.trillionths for it in charges} == {
        lost[0].id: 3,
        lost[1].id: 40,
    }
    assert await store.ledger.charge_lost(turn.id, 2) == []
    assert await state(store, budget) == (43, 30)
    await store.ledger.release(ours.id, 2)
    assert (await state(store, budget), await total(store)) == ((43, 0), (2, 43))


async def test_call_of_an_agent_that_others_run_counts_in_the_budgets_of_all_of_them(store: Store):
    inner, middle, outer = [await keep_agent(store) for _ in range(3)]
    own = await payer_of(store, outer)
    payer = nested_payer(own, [inner.id, middle.id, inner.id])
    assert payer == replace(own, agent_id=inner.id, within=(middle.id, outer.id))
    limits = BudgetLimits(agent_month=None, within_month=(None, 10))
    budgets = [Budget(BudgetScope.AGENT, it.id, MONTH, 10) for it in (inner, middle, outer)]
    assert limits.budgets(payer, DAY) == budgets[2:]
    reserved = reservation(payer, 8)
    assert await store.ledger.reserve(reserved, limits.budgets(payer, DAY)) == 8
    assert await state(store, budgets[2]) == (0, 8)
    full = reservation(payer, 8)
    assert isinstance(await store.ledger.reserve(full, limits.budgets(payer, DAY)), BudgetState)
    await store.ledger.charge(of(reserved, 7))
    assert [await state(store, it) for it in budgets] == [(7, 0)] * 3
    lost = reservation(payer, 2)
    await store.ledger.reserve(lost, limits.budgets(payer, DAY))
    assert len(await store.ledger.charge_abandoned(NOW + 1)) == 1
    assert [await state(store, it) for it in budgets] == [(9, 0), (7, 0), (9, 0)]
    by_agent = await store.ledger.usage(ALL_DAYS, ("agent",))
    assert {it.group["agent"]: it.cost for it in by_agent} == {inner.id: 9}
