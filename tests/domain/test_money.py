"""Amounts, prices and costs are exact."""

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.money import (
    MOST,
    UNIT,
    BudgetLimits,
    Cost,
    Payer,
    Price,
    add_costs,
    amount_text,
    day_of,
    end_of,
    month_before,
    month_of,
    parse_amount,
)


@given(st.integers(0, MOST * UNIT))
def test_amount_survives_as_text(amount: int):
    assert parse_amount(amount_text(amount)) == amount


@pytest.mark.parametrize(
    "text, amount",
    [("3", "3.00"), ("0.1", "0.10"), ("0.000003750000", "0.00000375"), (15, "15.00"), (0.3, "0.30")],
)
def test_text_of_an_amount_has_no_needless_digits(text: str | float, amount: str):
    assert amount_text(parse_amount(text)) == amount


@pytest.mark.parametrize(
    "value", ["", "a lot", "-1", "NaN", "Infinity", "9000001", "1e30", "1." + "0" * 40 + "1", True]
)
def test_what_is_no_amount_is_refused(value: str):
    with pytest.raises(InvalidRequest):
        parse_amount(value)


@pytest.mark.parametrize(
    "value",
    ["1e-13", "1e-9999999", "1e-999999999999999999", "9.99e-13", "0.0000000000001", "1E-400", 5e-324, 1e-13],
)
def test_amount_that_is_not_0_never_becomes_0(value: str | float):
    with pytest.raises(InvalidRequest):
        parse_amount(value)


@pytest.mark.parametrize("value", ["0", "0.0", "0e-9999999", "0e5", "-0", 0, 0.0])
def test_spellings_of_0(value: str | float):
    assert parse_amount(value) == 0


def test_price_with_too_many_decimals_is_refused_and_not_rounded():
    with pytest.raises(InvalidRequest, match="6 decimals"):
        parse_amount("0.0000001", decimals=6)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.data())
def test_no_call_costs_more_than_its_most(read: int, written: int, data: st.DataObject):
    tokens = st.integers(0, 10**7)
    price = Price(input=data.draw(tokens), output=data.draw(tokens), cached_input=read, cache_write=written)
    total, output = data.draw(tokens), data.draw(tokens)
    from_cache = data.draw(st.integers(0, total))
    to_cache = data.draw(st.integers(0, total - from_cache))
    cost = price.of(input_tokens=total, output_tokens=output, cache_read=from_cache, cache_write=to_cache)
    assert cost <= price.most(input_tokens=total, output_tokens=output)


def test_cached_input_has_its_own_price():
    price = Price(input=3_000_000, output=15_000_000, cached_input=300_000, cache_write=3_750_000)
    cost = price.of(input_tokens=1000, output_tokens=10, cache_read=600, cache_write=300)
    assert Decimal(amount_text(cost)) == Decimal("0.00018") + Decimal("0.001125") + Decimal(
        "0.0003"
    ) + Decimal("0.00015")


def test_sum_of_costs_is_unknown_where_one_of_them_is():
    assert add_costs(Cost("0.10", "USD"), Cost("0.20", "USD")) == Cost("0.30", "USD")
    assert add_costs(Cost("0.10", "USD"), None) is None
    assert add_costs(Cost("0.10", "USD"), Cost("0.20", "EUR")) is None


@pytest.mark.parametrize(
    ("at", "zone", "day", "day_ends", "month_ends"),
    [
        ("2026-10-31T23:59:59.999+00:00", "UTC", "2026-10-31", "2026-11-01T00:00Z", "2026-11-01T00:00Z"),
        ("2026-11-01T00:00:00+00:00", "UTC", "2026-11-01", "2026-11-02T00:00Z", "2026-12-01T00:00Z"),
        # The day on which clocks go back has 25 hours, and the one on which they go forward 23.
        ("2026-10-24T22:30Z", "Europe/Berlin", "2026-10-25", "2026-10-25T23:00Z", "2026-10-31T23:00Z"),
        ("2026-03-28T23:30Z", "Europe/Berlin", "2026-03-29", "2026-03-29T22:00Z", "2026-03-31T22:00Z"),
        # In Santiago, clocks go forward at midnight: the day begins at one o'clock.
        ("2026-09-06T03:30Z", "America/Santiago", "2026-09-05", "2026-09-06T04:00Z", "2026-10-01T03:00Z"),
        ("2026-12-31T16:00Z", "Asia/Shanghai", "2027-01-01", "2027-01-01T16:00Z", "2027-01-31T16:00Z"),
    ],
)  # fmt: skip
def test_periods_are_days_and_months_in_the_operators_zone(
    at: str, zone: str, day: str, day_ends: str, month_ends: str
):
    milliseconds = int(datetime.fromisoformat(at).timestamp() * 1000)
    assert day_of(milliseconds, ZoneInfo(zone)) == day
    for period, ends in ((day, day_ends), (month_of(day), month_ends)):
        assert end_of(period, ZoneInfo(zone)) == datetime.fromisoformat(ends).timestamp() * 1000


def test_the_month_before_january_is_december():
    assert (month_before("2026-01-31"), month_before("2026-11-17")) == ("2025-12", "2026-10")


def test_a_call_counts_against_the_budgets_that_limit_it_in_the_order_in_which_they_are_locked():
    payer = Payer(UserId("alice"), AgentId("a"), "k")
    limits = BudgetLimits(user_day=1, user_month=2, agent_month=3, key_month=4)
    budgets = limits.budgets(payer, "2026-11-17")
    assert [(it.scope, it.scope_id, it.period, it.limit) for it in budgets] == [
        ("agent", "a", "2026-11", 3),
        ("key", "k", "2026-11", 4),
        ("user", "alice", "2026-11", 2),
        ("user", "alice", "2026-11-17", 1),
    ]
    assert not BudgetLimits() and limits
