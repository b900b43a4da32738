"""What a call reserves and is charged, by the price and the budget of the moment."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import Any, cast

import pytest

from tests.conftest import ONLY_SQLITE
from tests.engine.in_memory import InMemoryGateway, InMemoryModels, Step
from tests.making import ALICE, NOW, keep_agent, keep_conversation, make_agent, opened, spending_of
from threadkeep.domain.agent import Agent, AgentCode, Code
from threadkeep.domain.errors import BudgetExceeded
from threadkeep.domain.ledger import BudgetState, Reservation, UsageFilter, UsageSum
from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model
from threadkeep.domain.money import Budget, Price, Purpose
from threadkeep.domain.turn import Lease, TurnCode
from threadkeep.domain.user import User
from threadkeep.engine.completion import complete
from threadkeep.metrics import Metrics
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    ModelEvent,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    TextDelta,
    ToolUse,
    UnshownDelta,
)
from threadkeep.runtime.spending import Spending
from threadkeep.storage.spending import ledger
from threadkeep.storage.spending.ledger import SqlLedger
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.testing.waiting import until

CENT = Price(input=0, output=10**10)
"""A hundredth for each token of the reply."""
ALL = UsageFilter("0001-01-01", "9999-12-31", None)
SAID = (TextDelta("Because."), ModelUsage(5, 3), ModelStopped("end_turn"))


class PricedGateway(InMemoryGateway):
    """A gateway whose price can change."""

    price: Price | None = CENT

    def describe(self, model: str) -> Model:
        return replace(super().describe(model), price=self.price)


async def call(spending: Spending, gateway: InMemoryGateway, agent: Agent, most: int | None = None) -> None:
    account = spending.account(User(ALICE), agent, Purpose.RERUN)
    await complete(gateway.model, account, "", "Why?", max_tokens=most, timeout_s=0)


@pytest.fixture
async def agent(store: Store) -> Agent:
    return await keep_agent(store)


class NodeLost(Exception):
    """The process was killed."""


async def ended_before(*_: object) -> None:
    """Ends the node before it charges anything."""
    raise NodeLost


async def charged(store: Store) -> list[UsageSum]:
    return list(await store.ledger.usage(ALL, ()))


def limited(store: Store, gateway: InMemoryGateway, month: str = "20") -> Spending:
    return spending_of(store, InMemoryModels(gateway), user_month=month)


@ONLY_SQLITE
async def test_output_limit_is_lowered_to_what_the_budget_can_pay_but_not_below_what_is_useful(
    store: Store, agent: Agent
):
    gateway = PricedGateway(SAID, SAID)
    spending = limited(store, gateway)
    await call(spending, gateway, agent)
    assert gateway.requests[0].max_tokens == 2000  # of 8192
    with pytest.raises(BudgetExceeded):
        await call(limited(store, gateway, "10"), gateway, agent)
    await call(limited(store, gateway, "10"), gateway, agent, most=500)
    assert gateway.requests[1].max_tokens == 500


@ONLY_SQLITE
async def test_without_a_budget_a_call_is_charged_and_its_request_stays_as_it_is(store: Store, agent: Agent):
    gateway = PricedGateway(SAID)
    await call(spending_of(store, InMemoryModels(gateway)), gateway, agent)
    assert gateway.requests[0].max_tokens is None
    (sum_,) = await charged(store)
    assert (sum_.calls, sum_.turns, sum_.cost, sum_.output_tokens) == (1, 0, 3 * CENT.output, 3)


@pytest.mark.parametrize("how", ["whole", "broken off", "abandoned"])
async def test_whatever_is_charged_is_counted_in_the_metrics(
    how: str, store: Store, agent: Agent, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledger, "ABANDONED_AT_ONCE", 2)
    gateway = PricedGateway(
        *[SAID if how == "whole" else (TextDelta("Because."), ReplyBrokeOff("It broke off."))] * 3
    )
    metrics = Metrics()
    spending = spending_of(store, InMemoryModels(gateway), user_month="20", charged=metrics.charged)
    if how == "abandoned":
        monkeypatch.setattr(spending, "charge", ended_before)
    for _ in range(3):
        with suppress(GatewayError, NodeLost):
            await call(spending, gateway, agent, most=16)
    assert await spending.charge_abandoned(spending.now + 1) == 3 * (how == "abandoned")
    (sum_,) = await charged(store)
    assert (sum_.calls, metrics.costs) == (3, {("in-memory/scripted", "USD"): sum_.cost})


@ONLY_SQLITE
async def test_a_call_costs_what_its_price_is_when_it_ends(store: Store, agent: Agent):
    gateway = PricedGateway()
    spending = limited(store, gateway)
    assert spending.priced("in-memory/m", Usage(1, 1)).cost == spending.cost(CENT.output)
    gateway.price = Price(input=0, output=2 * CENT.output)
    assert spending.priced("in-memory/m", Usage(1, 1)).cost == spending.cost(2 * CENT.output)
    gateway.price = None
    assert spending.priced("in-memory/m", Usage(1, 1)).cost is None


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("reply", "tokens", "is_estimated"),
    [
        ((TextDelta("Because."), ReplyBrokeOff("It broke off.")), 2, True),
        ((UnshownDelta(402), ReplyBrokeOff("It broke off.")), 101, True),
        ((TextDelta("1234"), UnshownDelta(9), ToolUse("1", "t", {"a": 1}), ReplyBrokeOff("…")), 4, True),
        ((ToolUse("1", "add", {"a": "b" * 80}), ReplyBrokeOff("It broke off.")), 23, True),
        ((TextDelta("Because."), ModelUsage(-5, 3), ModelStopped("end_turn")), 2, True),
        ((TextDelta("Because."), ModelStopped("end_turn")), 2, True),
        ((TextDelta("Because."), ModelUsage(5, 2), ModelUsage(5, 7), ModelStopped("end_turn")), 7, False),
        ((TextDelta("Because."), ModelUsage(5, 7), ModelUsage(5, -1), ModelStopped("end_turn")), 7, False),
    ],
    ids=[
        *("broke off", "in arguments", "after arguments", "arguments in one piece"),
        *("negative", "none", "twice", "a negative one after a good one"),
    ],
)
async def test_a_call_that_may_be_billed_is_charged_once_whatever_is_reported(
    store: Store, agent: Agent, reply: tuple[Step, ...], tokens: int, is_estimated: bool
):
    gateway = PricedGateway(reply)
    spending = limited(store, gateway)
    with suppress(ReplyBrokeOff):
        await call(spending, gateway, agent)
    (sum_,) = await charged(store)
    assert (sum_.calls, sum_.output_tokens, sum_.estimated) == (1, tokens, is_estimated)
    (state,) = await spending.states(spending.budgets_of_user(ALICE))
    assert (state.spent, state.reserved) == (tokens * CENT.output, 0)


@ONLY_SQLITE
@pytest.mark.parametrize("error", [GatewayError("Refused."), GatewayUnavailable("Busy.")])
async def test_a_call_that_was_not_billed_costs_nothing_and_leaves_nothing_reserved(
    store: Store, agent: Agent, error: GatewayError
):
    gateway = PricedGateway((error,))
    spending = limited(store, gateway)
    with pytest.raises(GatewayError):
        await call(spending, gateway, agent)
    assert await charged(store) == []
    (state,) = await spending.states(spending.budgets_of_user(ALICE))
    assert (state.spent, state.reserved) == (0, 0)


class Clock:
    """A clock that the test sets."""

    now = NOW

    def __call__(self) -> int:
        return self.now


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("last", "seconds", "tokens"),
    [
        (ReplyBrokeOff("It broke off."), 10, 300),
        (ReplyBrokeOff("It broke off."), 600, 2000),  # its limit
        (ReplyBrokeOff("It broke off."), -10, 2),
        (ModelStopped("end_turn"), 600, 2),
    ],
    ids=["by time", "at most what was reserved", "a clock that was set back", "a whole reply"],
)
async def test_a_call_that_is_cut_off_is_charged_for_what_it_may_have_thought(
    store: Store, agent: Agent, last: Step, seconds: int, tokens: int
):
    clock = Clock()

    class SlowGateway(PricedGateway):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            async for event in super().stream(request):
                clock.now = NOW + seconds * 1000
                yield event

    gateway = SlowGateway((TextDelta("Because."), last))
    spending = spending_of(store, InMemoryModels(gateway), clock, user_month="20")
    with suppress(ReplyBrokeOff):
        await call(spending, gateway, agent)
    (sum_,) = await charged(store)
    assert (sum_.output_tokens, sum_.estimated) == (tokens, True)


class SlowLedger:
    """A ledger whose answers come when the test says so."""

    def __init__(self, store: Store) -> None:
        self._ledger = store.ledger
        self.has_reserved, self.answers = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def reserve(self, reservation: Reservation, budgets: Sequence[Budget]) -> int | BudgetState:
        """Reserves, and says so late."""
        granted = await self._ledger.reserve(reservation, budgets)
        self.has_reserved.set()
        await self.answers.wait()
        return granted


@ONLY_SQLITE
@pytest.mark.parametrize("cancels", [1, 2])
async def test_a_call_that_is_cancelled_while_it_reserves_gives_back_what_it_took(
    store: Store, agent: Agent, cancels: int
):
    gateway, slow = PricedGateway(SAID), SlowLedger(store)
    models = InMemoryModels(gateway)
    spending = Spending(
        cast("SqlLedger", slow), store.keys, models, Clock(), UTC, currency="USD", user_month="20"
    )
    calling = asyncio.create_task(call(spending, gateway, agent))
    await slow.has_reserved.wait()
    for _ in range(cancels):
        calling.cancel()
        await asyncio.sleep(0)
    slow.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await calling

    async def is_given_back() -> bool:
        return await store.ledger.open_reservations() == 0

    await until(is_given_back)
    assert gateway.requests == [] and await charged(store) == []


async def held_turn(store: Store) -> HeldTurn:
    agent = await store.agents.declare(make_agent(None, code=AgentCode("orders", 1)))
    assert agent is not None
    await store.users.meet(ALICE, NOW)
    begun = (await keep_conversation(store, agent)).begin_turn("?", NOW)
    begun = replace(begun, turn=replace(begun.turn, code=TurnCode("orders", 1)))
    await store.turns.begin(opened(begun, Lease("a-node", 1, -1)))
    return HeldTurn(begun.turn, begun.conversation, begun.assistant_message, 1)


@ONLY_SQLITE
async def test_parallel_calls_of_a_program_share_its_budget_and_its_next_node_pays_for_lost_ones(
    store: Store,
):
    gateway, held = PricedGateway(), await held_turn(store)
    agent = await store.agents.get(held.conversation.agent_id)
    assert agent is not None
    spending, user = limited(store, gateway, "50"), User(ALICE)
    account = await spending.of_program(user, held, agent)
    request = ModelRequest("m", "", (), max_tokens=2_000)
    calls = [account.of_call(name) for name in ("1", "2", "3")]
    assert calls[0].made_call is None
    for it in calls[:2]:
        await it.reserve(gateway.model.model, request)
    with pytest.raises(BudgetExceeded):
        await calls[2].reserve(gateway.model.model, request)
    first, second = (it.made_call for it in calls[:2])
    assert first and second and first.reservation_id != second.reservation_id
    await calls[0].release()
    await calls[2].reserve(gateway.model.model, request)
    assert await store.ledger.open_reservations() == 2
    ours = await store.log.adopt(held.turn.id, Lease("b", 1, 10**9), alone=False, codes=[Code("orders", 1)])
    assert ours is not None
    await spending.of_program(user, ours, agent)  # it was killed: both may have been made
    assert await store.ledger.open_reservations() == 0
    (sum_,) = await charged(store)
    assert (sum_.calls, sum_.cost, sum_.estimated) == (2, 2 * 2_000 * CENT.output, True)
