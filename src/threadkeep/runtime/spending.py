"""Spending: what model calls cost, and the budgets that they stay within.

Before a call under a budget, what it can cost at most is reserved: one token for each byte of its request,
and its output limit. If less is left, the limit is lowered to what fits, unless too little would remain.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Protocol

from threadkeep.clock import Clock
from threadkeep.context.estimates import estimate_request_tokens, estimate_tokens, most_request_tokens
from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import BudgetExceeded, ModelNotAllowed
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.message import Usage
from threadkeep.domain.model import Model
from threadkeep.domain.money import (
    Budget,
    BudgetLimits,
    BudgetScope,
    Cost,
    Payer,
    Price,
    Purpose,
    amount_text,
    day_of,
    end_of,
    parse_amount,
)
from threadkeep.log.writer import persist
from threadkeep.ports.gateway import (
    GatewayError,
    ModelEvent,
    ModelRequest,
    ModelUsage,
    TextDelta,
    ThoughtDelta,
)
from threadkeep.ports.ledger import BudgetState, Charge, LedgerStore, Reservation
from threadkeep.wire.view import rfc3339


class ConnectedModel(Protocol):
    """A model that can be called."""

    @property
    def model(self) -> Model:
        """What is known about it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls it."""
        ...


DEFAULT_OUTPUT_TOKENS = 8_192
"""The output limit under a budget, where neither the agent nor the operator nor the model has one."""
LEAST_OUTPUT_TOKENS = 1_024
"""A reply shorter than this is rather refused than cut off."""

_WHOSE = {
    BudgetScope.USER: "your budget",
    BudgetScope.AGENT: "this agent's budget",
    BudgetScope.KEY: "this API key's budget",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidCall:
    """A model call that somebody pays for: who, what for, and within which limits."""

    id: str
    """Its turn's id, or one of its own."""
    payer: Payer
    purpose: Purpose
    limits: BudgetLimits
    at: int
    fence: int | None = None
    """The fence of the turn that makes it."""


class Spending:
    """Knows the operator's budgets; reserves and charges what model calls cost."""

    def __init__(
        self,
        ledger: LedgerStore,
        clock: Clock,
        zone: tzinfo,
        *,
        currency: str,
        user_day: str | float = "0",
        user_month: str | float = "0",
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._zone = zone
        self.currency = currency
        self._limits = BudgetLimits(
            user_day=parse_amount(user_day) or None, user_month=parse_amount(user_month) or None
        )

    @property
    def today(self) -> str:
        """The day in the operator's time zone."""
        return day_of(self._clock(), self._zone)

    def limits_of(self, agent: Agent, *, key_month: int | None = None) -> BudgetLimits:
        """The limits of calls for an agent, made with an API key or without."""
        agent_month = parse_amount(agent.settings.budget_month) or None
        if agent_month is None and key_month is None:
            return self._limits
        return replace(self._limits, agent_month=agent_month, key_month=key_month)

    def priced(self, model: Model, usage: Usage) -> Usage:
        """A call's usage with its cost, if the model's price is known."""
        if model.price is None:
            return usage
        amount = model.price.of(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_write=usage.cache_write_tokens,
        )
        return replace(usage, cost=Cost.of(amount, self.currency))

    async def check(self, payer: Payer, limits: BudgetLimits, model: Model, content: str) -> None:
        """Refuses a turn before it begins if not even its message and a short reply fit its budgets."""
        price = _price_of(model) if limits else None
        if price is None or not (least := price.most(input_tokens=len(content), output_tokens=1)):
            return
        states = await self._ledger.states(limits.budgets(payer, self.today), self.currency)
        tightest = min(states, key=lambda it: it.left)
        if tightest.left < least:
            raise self._refusal(tightest)

    async def reserve(self, call: PaidCall, model: Model, request: ModelRequest) -> ModelRequest:
        """Reserves what a call can cost at most; returns its request with an output limit that it can pay."""
        if not call.limits:
            return request
        price, output = _price_of(model), output_limit(model, request)
        sent = most_request_tokens(request)
        most = price.most(input_tokens=sent, output_tokens=output)
        if not most:  # it is free
            return request
        day = day_of(call.at, self._zone)
        reservation = Reservation(
            id=call.id,
            payer=call.payer,
            purpose=call.purpose,
            model=model.id,
            at=call.at,
            day=day,
            least=price.most(input_tokens=sent, output_tokens=min(output, LEAST_OUTPUT_TOKENS)),
            most=most,
            currency=self.currency,
            fence=call.fence,
        )
        granted = await persist(
            lambda: self._ledger.reserve(reservation, call.limits.budgets(call.payer, day))
        )
        if isinstance(granted, BudgetState):
            raise self._refusal(granted)
        if granted < most:
            output = (granted - price.most(input_tokens=sent, output_tokens=0)) // price.output
        return replace(request, max_tokens=output)

    async def release(self, call: PaidCall) -> None:
        """Gives back what was reserved for a call that was not billed."""
        if call.limits:
            await persist(lambda: self._ledger.release(call.id))

    def metered(
        self, connected: ConnectedModel, agent: Agent, payer: Payer, purpose: Purpose
    ) -> "MeteredModel":
        """A model for calls outside a turn: each is reserved and charged."""
        return MeteredModel(self, self._ledger, connected, self.limits_of(agent), payer, purpose, self._clock)

    def charge_of(self, call: PaidCall, model: Model, usage: Usage) -> Charge:
        """The ledger's row of a call outside a turn."""
        return Charge(
            id=call.id,
            payer=call.payer,
            purpose=call.purpose,
            model=model.id,
            usage=self.priced(model, usage),
            at=call.at,
            day=day_of(call.at, self._zone),
            reservation_id=call.id,
        )

    def budgets_of_user(self, user_id: UserId) -> list[Budget]:
        """The budgets that the operator gives a user."""
        return self._limits.budgets(Payer(user_id, None), self.today)

    def budgets_of_agents(self, agents: Iterable[Agent]) -> list[Budget]:
        """The budgets that owners give their agents."""
        return [
            budget
            for agent in agents
            for budget in replace(self.limits_of(agent), user_day=None, user_month=None).budgets(
                Payer(UserId(""), agent.id), self.today
            )
        ]

    async def states(self, budgets: Sequence[Budget]) -> Sequence[BudgetState]:
        """What budgets have left."""
        return await self._ledger.states(budgets, self.currency) if budgets else ()

    def cost(self, amount: int) -> Cost:
        """An amount in the operator's currency."""
        return Cost.of(amount, self.currency)

    def resets_at(self, budget: Budget) -> int:
        """When a budget's period ends."""
        return end_of(budget.period, self._zone)

    def _refusal(self, state: BudgetState) -> BudgetExceeded:
        budget = state.budget
        limit, resets_at = amount_text(budget.limit), rfc3339(self.resets_at(budget))
        period = "month" if budget.is_monthly else "day"
        return BudgetExceeded(
            f"There isn't enough left of {_WHOSE[budget.scope]} of {limit} {self.currency} per {period}. "
            f"It starts anew at {resets_at}.",
            details={
                "scope": budget.scope,
                "limit": limit,
                "spent": amount_text(state.spent),
                "resetsAt": resets_at,
            },
        )


class MeteredModel:
    """A model whose calls are reserved and charged; for calls outside a turn."""

    def __init__(
        self,
        spending: Spending,
        ledger: LedgerStore,
        connected: ConnectedModel,
        limits: BudgetLimits,
        payer: Payer,
        purpose: Purpose,
        clock: Clock,
    ) -> None:
        self.model = connected.model
        self._spending = spending
        self._ledger = ledger
        self._connected = connected
        self._limits = limits
        self._payer = payer
        self._purpose = purpose
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls the model within its budgets, and charges what that used, even if it breaks off."""
        call = PaidCall(
            id=new_uuid(), payer=self._payer, purpose=self._purpose, limits=self._limits, at=self._clock()
        )
        request = await self._spending.reserve(call, self.model, request)
        written: list[str] = []
        reported: ModelUsage | None = None
        may_be_billed = True
        stream = self._connected.stream(request)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text) | ThoughtDelta(text):
                        written.append(text)
                    case ModelUsage():
                        reported = event.plausible()
                    case _:
                        pass
                yield event
        except GatewayError:
            may_be_billed = bool(written or reported)
            raise
        finally:
            await stream.aclose()
            if may_be_billed:
                usage = reported_usage(reported) or Usage(
                    estimate_request_tokens(request), estimate_tokens("".join(written)), estimated=True
                )
                charge = self._spending.charge_of(call, self.model, usage)
                await persist(lambda: self._ledger.charge(charge))
            else:
                await self._spending.release(call)


def output_limit(model: Model, request: ModelRequest) -> int:
    """The output limit of a call under a budget; it fits the model's context beside the request."""
    wanted = request.max_tokens or model.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    room = model.context_tokens - estimate_request_tokens(request)
    return min(wanted, max(room, 1))


def reported_usage(reported: ModelUsage | None) -> Usage | None:
    """A provider's own numbers, if it reported any."""
    if reported is None:
        return None
    return Usage(
        input_tokens=reported.input_tokens,
        output_tokens=reported.output_tokens,
        cache_read_tokens=reported.cache_read_tokens,
        cache_write_tokens=reported.cache_write_tokens,
    )


def _price_of(model: Model) -> Price:
    if model.price is None:
        raise ModelNotAllowed(
            f"The model {model.id} has no known price, so it can't be used under a budget.",
            param="model",
            details={"model": model.id},
        )
    return model.price
