"""The breaker: each failure in a row makes the pause longer, one success ends it."""

from threadkeep.mcp.breaker import DELAYS_S, Breaker


def test_first_failure_is_forgiven_and_further_ones_cost_more_and_more():
    breaker, now, waits = Breaker(), 1000.0, list[float]()
    for _ in range(len(DELAYS_S) + 2):
        breaker.failed(now, "It ended.")
        waits.append(breaker.wait_s(now))
        now += waits[-1]
        assert breaker.wait_s(now) == 0
    assert waits == [*DELAYS_S, DELAYS_S[-1], DELAYS_S[-1]]


def test_success_forgets_all_failures():
    breaker = Breaker()
    for _ in range(5):
        breaker.failed(0, "It ended.")
    breaker.succeeded()
    assert breaker == Breaker()


def test_forgiven_breaker_lets_one_try_through_and_goes_on_counting():
    breaker = Breaker()
    for _ in range(3):
        breaker.failed(0, "It ended.")
    breaker.forgive()
    assert breaker.wait_s(0) == 0
    breaker.failed(0, "It ended.")
    assert breaker.wait_s(0) == DELAYS_S[3]
