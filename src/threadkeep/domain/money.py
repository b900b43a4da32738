"""Money: amounts, prices, costs and budgets, exact to the last digit.

An amount is a whole number of trillionths of the currency's unit. A price per million tokens with at most six
decimals is then a whole number per token, and sums of costs are sums of whole numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.times import time_in

UNIT = 10**12
"""The trillionths in one unit of the currency."""
MOST = 9_000_000
"""The largest amount, in units: a budget's trillionths fit the database's whole numbers."""
TOKENS_PRICED = 1_000_000
"""Prices are for this many tokens."""
PRICE_DECIMALS, AMOUNT_DECIMALS = 6, 12
MOST_CHARACTERS = 28
"""Of an amount as text: more would be rounded."""


def parse_amount(
    value: str | int | float, *, param: str | None = None, decimals: int = AMOUNT_DECIMALS
) -> int:
    """An amount in trillionths, from a decimal text or a number; InvalidRequest if it is neither."""
    text = str(value)
    try:
        parsed = Decimal(text) if len(text) <= MOST_CHARACTERS else None
    except InvalidOperation:
        parsed = None
    if parsed is None or not parsed.is_finite() or not 0 <= parsed <= MOST:
        raise InvalidRequest(f"An amount of money is a decimal from 0 to {MOST}.", param=param)
    # Asked of the digits: arithmetic rounds what is tiny to 0, which means no limit.
    if (parsed and parsed.adjusted() < -decimals) or parsed * 10**decimals % 1:
        raise InvalidRequest(f"Use at most {decimals} decimals here, as in 2.50.", param=param)
    return int(parsed * UNIT)


def amount_text(amount: int) -> str:
    """An amount as a decimal text, without trailing zeros but with at least two decimals."""
    sign, whole, rest = "-" if amount < 0 else "", *divmod(abs(amount), UNIT)
    return f"{sign}{whole}.{f'{rest:012d}'.rstrip('0'):0<2}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What something has cost, as clients, logs and exports have it."""

    amount: str
    currency: str

    @staticmethod
    def of(amount: int, currency: str) -> "Cost":
        """The cost of an amount in trillionths."""
        return Cost(amount_text(amount), currency)

    @property
    def trillionths(self) -> int:
        """The amount for sums."""
        return int(Decimal(self.amount) * UNIT)


def add_costs(one: Cost | None, other: Cost | None) -> Cost | None:
    """The sum of two costs; unknown if one of them is, or if their currencies differ."""
    if one is None or other is None or one.currency != other.currency:
        return None
    return Cost.of(one.trillionths + other.trillionths, one.currency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model charges for each token, in trillionths."""

    input: int
    output: int
    cached_input: int | None = None
    cache_write: int | None = None

    @staticmethod
    def per_million(
        *,
        input: str | float,  # noqa: A002 - as providers call it
        output: str | float,
        cached_input: str | float | None = None,
        cache_write: str | float | None = None,
    ) -> "Price":
        """A price as providers quote it, per million tokens; InvalidRequest names what isn't an amount."""
        return Price(
            input=_per_token(input, "input"),
            output=_per_token(output, "output"),
            cached_input=None if cached_input is None else _per_token(cached_input, "cachedInput"),
            cache_write=None if cache_write is None else _per_token(cache_write, "cacheWrite"),
        )

    def of(self, *, input_tokens: int, output_tokens: int, cache_read: int = 0, cache_write: int = 0) -> int:
        """What a call costs; `input_tokens` includes what was read from and written to the cache."""
        plain = input_tokens - cache_read - cache_write
        return (
            plain * self.input
            + cache_read * _or(self.cached_input, self.input)
            + cache_write * _or(self.cache_write, self.input)
            + output_tokens * self.output
        )

    def most(self, *, input_tokens: int, output_tokens: int) -> int:
        """What a call can cost at most, however much of it is cached."""
        highest = max(self.input, self.cached_input or 0, self.cache_write or 0)
        return input_tokens * highest + output_tokens * self.output


FREE = Price(input=0, output=0)


def _per_token(price: str | float, name: str) -> int:
    return parse_amount(price, param=f"price.{name}", decimals=PRICE_DECIMALS) // TOKENS_PRICED


def _or(price: int | None, otherwise: int) -> int:
    return otherwise if price is None else price


class Purpose(Choice):
    """What a model was called for."""

    TURN = "turn"
    TITLE = "title"
    COMPACTION = "compaction"
    RERUN = "rerun"
    COMPLETION = "completion"
    """A reply outside any conversation."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose budgets a model call counts against: its user's, its agent's, and its API key's.

    `within` are the agents that run that agent: the call counts against their budgets, too.
    """

    user_id: UserId
    agent_id: AgentId | None
    key_id: str | None = None
    within: tuple[AgentId, ...] = ()


def nested_payer(payer: Payer, agents: Sequence[str]) -> Payer:
    """Who pays for a call of an agent that others run: itself, then those, the payer's own agent last."""
    if not agents:
        return payer
    first, *others = dict.fromkeys(AgentId(it) for it in agents)
    if payer.agent_id is not None and payer.agent_id not in (first, *others):
        others.append(payer.agent_id)
    return replace(payer, agent_id=first, within=tuple(others))


class BudgetScope(Choice):
    """Whose spending a budget limits."""

    USER = "user"
    AGENT = "agent"
    KEY = "key"


def day_of(at: int, zone: tzinfo) -> str:
    """The day of a time in a zone, such as 2026-11-17. Its first seven characters are the month."""
    return time_in(at, zone).date().isoformat()


def month_of(day: str) -> str:
    """The month of a day, such as 2026-11."""
    return day[:7]


def month_before(day: str) -> str:
    """The month before a day's own."""
    last = date.fromisoformat(day).replace(day=1) - timedelta(days=1)
    return month_of(last.isoformat())


def end_of(period: str, zone: tzinfo) -> int:
    """The first millisecond after a day or month in a zone."""
    first = date.fromisoformat(f"{period}-01" if _is_month(period) else period)
    after = first + timedelta(days=32 if _is_month(period) else 1)
    end = after.replace(day=1) if _is_month(period) else after
    return int(datetime(end.year, end.month, end.day, tzinfo=zone).timestamp() * 1000)


def _is_month(period: str) -> bool:
    return len(period) == len("2026-11")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent in a period, a day or a month; `limit` in trillionths."""

    scope: BudgetScope
    scope_id: str
    period: str
    limit: int

    @property
    def is_monthly(self) -> bool:
        """Whether its period is a month."""
        return _is_month(self.period)


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits that apply to a call, in trillionths; None where there is none."""

    user_day: int | None = None
    user_month: int | None = None
    agent_month: int | None = None
    key_month: int | None = None
    within_month: tuple[int | None, ...] = ()
    """Those of the agents that run the call's agent, in the order of `Payer.within`."""

    def budgets(self, payer: Payer, day: str) -> list[Budget]:
        """The budgets that a payer's calls of a day count against, in the order in which they are locked."""
        month = month_of(day)
        limited = (
            (BudgetScope.AGENT, payer.agent_id, month, self.agent_month),
            *self._of_others(payer, month),
            (BudgetScope.KEY, payer.key_id, month, self.key_month),
            (BudgetScope.USER, payer.user_id, month, self.user_month),
            (BudgetScope.USER, payer.user_id, day, self.user_day),
        )
        return [
            Budget(scope, id_, period, limit)
            for scope, id_, period, limit in limited
            if id_ and limit is not None
        ]

    def _of_others(self, payer: Payer, month: str) -> Iterator[tuple[BudgetScope, str, str, int | None]]:
        """Those of the agents that run the call's agent, each once."""
        seen = {payer.agent_id}
        for agent_id, limit in zip(payer.within, self.within_month, strict=False):
            if agent_id not in seen:
                seen.add(agent_id)
                yield BudgetScope.AGENT, agent_id, month, limit

    def __bool__(self) -> bool:
        return replace(self, within_month=()) != NO_LIMITS or any(it is not None for it in self.within_month)


NO_LIMITS = BudgetLimits()
