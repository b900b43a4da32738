"""Spending: what model calls cost, and the budgets that they stay within.

Before a call under a budget, what it can cost at most is reserved: one token for each byte of its request,
and its output limit. If less is left, the limit is lowered to what fits, unless too little would remain.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from uuid import UUID, uuid5

from threadkeep.clock import Clock
from threadkeep.context.estimates import estimate_request_tokens, most_request_tokens
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import BudgetExceeded, GatewayNotConfigured, ModelNotAllowed, ModelNotFound
from threadkeep.domain.events import UsageReported
from threadkeep.domain.ids import KeyId, TurnId, UserId, new_uuid
from threadkeep.domain.key import Key
from threadkeep.domain.ledger import BudgetState, Charge, Reservation
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
    month_of,
    nested_payer,
    parse_amount,
)
from threadkeep.domain.turn import HeldRun, Turn
from threadkeep.domain.user import User
from threadkeep.engine.journal import CallPaid
from threadkeep.log.writer import Charged, persist
from threadkeep.ports.gateway import ModelRequest
from threadkeep.ports.models import Models
from threadkeep.runtime.control import Calling
from threadkeep.runtime.leases import FIRST_FENCE
from threadkeep.storage.keys import SqlKeys
from threadkeep.storage.spending.ledger import SqlLedger
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.tasks import taken_whole
from threadkeep.wire.view import rfc3339

DEFAULT_OUTPUT_TOKENS = 8_192
"""The output limit under a budget, where neither the agent nor the operator nor the model has one."""
LEAST_LIMIT_TOKENS = 16
"""The smallest output limit that every provider accepts: a smaller one is sent to some as this."""
LEAST_OUTPUT_TOKENS = 1_024
"""Refuse rather than cut a reply below this length."""

ReportUsage = Callable[[CallPaid, UsageReported], bool]
"""Puts what a call has used into its turn's log, which charges it; False if that is elsewhere, or over."""

UNSEEN_TOKENS_PER_S = 30
"""How fast we take a model to write at least: most are faster, so what they show counts for more."""

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
    turn_id: TurnId | None = None
    """That turn, if it can make several calls at once; then `id` is the call's own."""


class Spending:
    """Knows the operator's budgets; reserves and charges what model calls cost."""

    def __init__(
        self,
        ledger: SqlLedger,
        keys: SqlKeys,
        models: Models,
        clock: Clock,
        zone: tzinfo,
        *,
        currency: str,
        user_day: str | float = "0",
        user_month: str | float = "0",
        charged: Charged = lambda model, cost: None,
    ) -> None:
        self._charged = charged
        self._ledger = ledger
        self._keys = keys
        self._models = models
        self._clock = clock
        self._zone = zone
        self.currency = currency
        self._limits = BudgetLimits(
            user_day=parse_amount(user_day) or None, user_month=parse_amount(user_month) or None
        )

    @property
    def now(self) -> int:
        """The time in milliseconds."""
        return self._clock()

    @property
    def today(self) -> str:
        """The day in the operator's time zone."""
        return day_of(self._clock(), self._zone)

    def limits_of(self, agent: Agent, key: Key | None = None) -> BudgetLimits:
        """The limits of calls for an agent, made with an API key or without."""
        agent_month = parse_amount(agent.settings.budget_month) or None
        key_month = (key.budget_month or None) if key else None
        if agent_month is None and key_month is None:
            return self._limits
        return replace(self._limits, agent_month=agent_month, key_month=key_month)

    def priced(self, model: str | None, usage: Usage, *, begun_at: Price | None = None) -> Usage:
        """A call's usage with its cost, by the price of this moment, if there is one.

        `begun_at` is the price at which it began, for a model that was removed or lost its price meanwhile.
        """
        price = self._price_of(model) or begun_at
        if price is None:
            return usage
        amount = price.of(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_write=usage.cache_write_tokens,
        )
        return replace(usage, cost=Cost.of(amount, self.currency))

    async def of_turn(self, user: User, held: HeldTurn, agent: Agent, calling: Calling) -> "TurnAccount":
        """Pays for the calls of a turn."""
        payer = Payer(user.id, agent.id, held.turn.key_id)
        return TurnAccount(self, held, payer, await self._limits_of_turn(user, held.turn, agent), calling)

    async def of_program(self, user: User, held: HeldTurn, agent: Agent) -> "ProgramAccount":
        """Pays for the calls of a turn whose agent is a program, also for several at once.

        First charges what earlier nodes reserved for calls of it that they did not live to report.
        """
        if held.fence > FIRST_FENCE:
            charges = await persist(lambda: self._ledger.charge_lost(held.turn.id, held.fence))
            for charge in charges:
                self._charged(charge.model, charge.usage.cost)
        payer = Payer(user.id, agent.id, held.turn.key_id)
        return ProgramAccount(self, held, payer, await self._limits_of_turn(user, held.turn, agent))

    async def of_nested(
        self, user: User, held: HeldTurn, own: Agent, agents: Sequence[Agent]
    ) -> "ProgramAccount":
        """Pays for the calls of an agent inside such a turn: the first of these, which the next one runs, and
        so on. They count against the budgets of all of them, and of the turn's own.
        """
        ids = [it.id for it in agents]
        payer = nested_payer(Payer(user.id, own.id, held.turn.key_id), ids)
        by_id = {it.id: it for it in (*agents, own)}
        limits = await self._limits_of_turn(user, held.turn, agents[0])
        within = tuple(self.limits_of(by_id[it]).agent_month for it in payer.within)
        return ProgramAccount(self, held, payer, replace(limits, within_month=within), agents=tuple(ids))

    async def of_outside_call(self, run: HeldRun, agent: Agent, report: ReportUsage) -> "OutsideAccount":
        """Pays for a call that a program's own SDK makes while it runs."""
        payer = Payer(run.user_id, run.agent_id, run.turn.key_id)
        limits = await self._limits_of_turn(User(run.user_id), run.turn, agent)
        return OutsideAccount(self, run, payer, limits, report)

    async def _limits_of_turn(self, user: User, turn: Turn, agent: Agent) -> BudgetLimits:
        """The limits of a turn; its user may have signed in with another key than the one that began it."""
        return self.limits_of(agent, (await self.with_key(user, turn.key_id)).key)

    async def with_key(self, user: User, key_id: str | None) -> User:
        """A user with the key that pays, as long as it exists, instead of their own."""
        if user.key_id == key_id:
            return user
        # Not necessarily the user's own: it may act for them.
        return replace(user, key=await self._keys.get(KeyId(key_id)) if key_id else None)

    async def check(self, user: User, begun: BegunTurn, agent: Agent) -> None:
        """Refuses a turn before it begins if not even its message fits its budgets."""
        limits, asked = await self._limits_of_turn(user, begun.turn, agent), begun.user_message
        if not limits:
            return
        price = self._paid_price(begun.turn.model)
        least = price.most(input_tokens=len(asked.text) if asked else 0, output_tokens=1)
        payer = Payer(user.id, agent.id, begun.turn.key_id)
        states = await self.states(limits.budgets(payer, self.today)) if least else ()
        tightest = min(states, key=lambda it: it.left, default=None)
        if tightest is not None and tightest.left < least:
            raise self._refusal(tightest)

    def _price_of(self, model: str | None) -> Price | None:
        try:
            return self._models.get(model).model.price
        except (ModelNotFound, GatewayNotConfigured):  # removed since the call was made
            return None

    def _paid_price(self, model: str | None) -> Price:
        """The price of a model under a budget."""
        if (price := self._price_of(model)) is None:
            raise ModelNotAllowed(
                f"The model {model} has no known price, so it can't be used under a budget. An admin can "
                "set its price under Models.",
                param="model",
                details={"model": model},
            )
        return price

    async def reserve(self, call: PaidCall, model: Model, request: ModelRequest) -> ModelRequest:
        """Reserves what a call can cost at most; returns its request with an output limit that it can pay."""
        if not call.limits:
            return request
        price, output = self._paid_price(model.id), output_limit(model, request)
        sent, reply = most_request_tokens(request), max(output, LEAST_LIMIT_TOKENS)
        most = price.most(input_tokens=sent, output_tokens=reply)
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
            least=price.most(input_tokens=sent, output_tokens=min(reply, LEAST_OUTPUT_TOKENS)),
            most=most,
            currency=self.currency,
            fence=call.fence,
            turn_id=call.turn_id,
        )
        budgets = call.limits.budgets(call.payer, day)
        reserving = persist(lambda: self._ledger.reserve(reservation, budgets))
        granted = await taken_whole(reserving, lambda: self.release(call.id, call.fence))
        if isinstance(granted, BudgetState):
            raise self._refusal(granted)
        if granted < most:
            output = (granted - price.most(input_tokens=sent, output_tokens=0)) // price.output
        return replace(request, max_tokens=output)

    async def release(self, reservation_id: str, fence: int | None = None) -> None:
        """Gives back what was reserved for a call that was not billed."""
        await persist(lambda: self._ledger.release(reservation_id, fence))

    def account(self, user: User, agent: Agent, purpose: Purpose) -> "Account":
        """Pays for calls outside any turn."""
        payer = Payer(user.id, agent.id, user.key_id)
        return Account(self, payer, purpose, self.limits_of(agent, user.key))

    async def charge(self, call: PaidCall, model: Model, usage: Usage) -> None:
        """Adds a call outside a turn to the ledger, which settles what was reserved for it."""
        charge = Charge(
            id=call.id,
            payer=call.payer,
            purpose=call.purpose,
            model=model.id,
            usage=usage,
            at=call.at,
            day=day_of(call.at, self._zone),
            reservation_id=call.id,
        )
        await persist(lambda: self._ledger.charge(charge))
        self._charged(charge.model, charge.usage.cost)

    async def charge_abandoned(self, before: int) -> int:
        """Charges in full what was reserved for calls that nobody is left to charge; returns how many."""
        count = 0
        while charges := await self._ledger.charge_abandoned(before):
            for charge in charges:
                self._charged(charge.model, charge.usage.cost)
            count += len(charges)
        return count

    def budgets_of_user(self, user_id: UserId) -> list[Budget]:
        """The budgets that the operator gives a user."""
        return self._limits.budgets(Payer(user_id, None), self.today)

    def budgets_of_keys(self, keys: Iterable[Key]) -> list[Budget]:
        """The budgets of API keys."""
        month = month_of(self.today)
        return [Budget(BudgetScope.KEY, it.id, month, it.budget_month) for it in keys if it.budget_month]

    def budgets_of_agents(self, agents: Iterable[Agent]) -> list[Budget]:
        """The budgets that owners give their agents."""
        month = month_of(self.today)
        limits = ((it.id, parse_amount(it.settings.budget_month)) for it in agents)
        return [Budget(BudgetScope.AGENT, id_, month, limit) for id_, limit in limits if limit]

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
            f"It resets at {resets_at}.",
            details={
                "scope": budget.scope,
                "limit": limit,
                "spent": amount_text(state.spent),
                "resetsAt": resets_at,
            },
        )


class Account:
    """Pays for model calls outside any turn, one at a time, each when it ends."""

    def __init__(self, spending: Spending, payer: Payer, purpose: Purpose, limits: BudgetLimits) -> None:
        self._spending = spending
        self._payer = payer
        self._purpose = purpose
        self._limits = limits
        self._call: PaidCall | None = None
        self._model: Model | None = None
        self._called_at = 0
        self._most_tokens: int | None = None
        self.refused: BudgetExceeded | None = None
        """The budget that had no room for a call."""

    @property
    def is_limited(self) -> bool:
        """Whether a budget applies."""
        return bool(self._limits)

    @property
    def made_call(self) -> CallPaid | None:
        """None: calls are made one at a time."""
        return None

    async def reserve(self, model: Model, request: ModelRequest) -> ModelRequest:
        """Reserves what a call can cost at most; the request gets an output limit, if there is a budget."""
        self._model, self._call = model, await self._begun()
        try:
            limited = await self._spending.reserve(self._call, model, request)
        except BudgetExceeded as exc:
            self.refused = exc
            raise
        self._called_at, self._most_tokens = self._spending.now, limited.max_tokens
        return limited

    async def _begun(self) -> PaidCall:
        return self._paid(new_uuid(), self._spending.now)

    def _paid(self, id_: str, at: int, fence: int | None = None) -> PaidCall:
        return PaidCall(
            id=id_, payer=self._payer, purpose=self._purpose, limits=self._limits, at=at, fence=fence
        )

    async def release(self) -> None:
        """Gives back what was reserved for a call that was not billed."""
        if self._limits and self._call is not None:
            await self._spending.release(self._call.id, self._call.fence)

    async def charge(self, usage: Usage) -> None:
        """Adds the call to the ledger."""
        if self._call is not None and self._model is not None:
            await self._spending.charge(self._call, self._model, usage)

    def cut_off(self, estimate: Usage) -> Usage:
        """The usage of a call that was cut off; under a budget, at least what it wrote in its time."""
        if not self._limits:
            return estimate
        return least_usage(estimate, self._spending.now - self._called_at, self._most_tokens)

    def priced(self, model: str | None, usage: Usage) -> Usage:
        """A call's usage with its cost."""
        called = self._model
        begun_at = called.price if called and called.id == model else None
        return self._spending.priced(model, usage, begun_at=begun_at)


class TurnAccount(Account):
    """Pays for the model calls of one turn, whose log charges them when it stores their usage."""

    def __init__(
        self, spending: Spending, held: HeldTurn, payer: Payer, limits: BudgetLimits, calling: Calling
    ) -> None:
        super().__init__(spending, payer, Purpose.TURN, limits)
        self._held = held
        self._calling = calling

    async def _begun(self) -> PaidCall:
        """A call that begins after everything before it is stored and settled."""
        at = await self._calling() if self._limits else self._spending.now
        return self._paid(self._held.turn.id, at, self._held.fence)

    async def charge(self, usage: Usage) -> None:
        """Nothing: the log does."""


class ProgramAccount:
    """Pays for the model calls of a program's turn; each has an account of its own."""

    def __init__(
        self,
        spending: Spending,
        held: HeldTurn,
        payer: Payer,
        limits: BudgetLimits,
        *,
        agents: tuple[str, ...] = (),
    ) -> None:
        self._spending = spending
        self._held = held
        self._payer = payer
        self._limits = limits
        self._agents = agents
        """The agents inside the turn whose calls these are, the innermost first."""

    def of_call(self, name: str) -> "CallAccount":
        """Pays for one call, which has this name in the turn, with all that it takes to get a reply."""
        return CallAccount(self._spending, self._held, self._payer, self._limits, name, self._agents)

    def own_call(self, cost: str | None) -> CallPaid:
        """A call that the program made itself just now, with what it says that it cost."""
        reported = None if cost is None else self._spending.cost(parse_amount(cost))
        return CallPaid(
            new_uuid(), self._spending.now, is_reported=True, reported_cost=reported, agents=self._agents
        )


class CallAccount(Account):
    """Pays for one model call of a program's turn, whose log charges it when it stores its usage."""

    def __init__(
        self,
        spending: Spending,
        held: HeldTurn,
        payer: Payer,
        limits: BudgetLimits,
        name: str,
        agents: tuple[str, ...] = (),
    ) -> None:
        super().__init__(spending, payer, Purpose.TURN, limits)
        self._held = held
        self._name = name
        self._agents = agents
        self._made = 0

    @property
    def made_call(self) -> CallPaid | None:
        """What was reserved for the last attempt, and when."""
        if self._call is None:
            return None
        at = self._called_at or self._call.at
        return CallPaid(self._call.id, at, call=self._name, agents=self._agents)

    async def _begun(self) -> PaidCall:
        self._made += 1
        turn_id, fence = self._held.turn.id, self._held.fence
        id_ = str(uuid5(UUID(turn_id), f"{fence}/{self._name}/{self._made}"))
        return replace(self._paid(id_, self._spending.now, fence), turn_id=turn_id)

    async def charge(self, usage: Usage) -> None:
        """Nothing: the log does."""


class OutsideAccount(Account):
    """Pays for one model call that a program's own SDK makes: with the turn's log while that is here."""

    def __init__(
        self, spending: Spending, run: HeldRun, payer: Payer, limits: BudgetLimits, report: ReportUsage
    ) -> None:
        super().__init__(spending, payer, Purpose.TURN, limits)
        self._run = run
        self._report = report

    async def _begun(self) -> PaidCall:
        call = self._paid(new_uuid(), self._spending.now, self._run.fence)
        return replace(call, turn_id=self._run.turn.id)

    async def charge(self, usage: Usage) -> None:
        """Puts the call into the turn's log, which charges it; else adds it to the ledger."""
        if self._call is None or self._model is None:
            return
        paid = CallPaid(self._call.id, self._called_at or self._call.at)
        if not self._report(paid, UsageReported.of(usage, self._model.id)):
            await super().charge(usage)


def least_usage(estimate: Usage, elapsed_ms: int, most_tokens: int | None) -> Usage:
    """What a call under a budget is charged that was cut off before its provider said what it used.

    A model may send its thoughts late or never: they count by the time that the call took, within its limit.
    """
    by_time = min(max(elapsed_ms, 0) * UNSEEN_TOKENS_PER_S // 1000, most_tokens or 0)
    return replace(estimate, output_tokens=max(estimate.output_tokens, by_time))


def output_limit(model: Model, request: ModelRequest) -> int:
    """The output limit of a call under a budget; it fits the model's context beside the request."""
    wanted = request.max_tokens or model.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    room = model.context_tokens - estimate_request_tokens(request)
    return min(wanted, max(room, 1))
