"""Amounts, prices and costs are exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.money import MOST, UNIT, Cost, Price, add_costs, amount_text, parse_amount


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
