"""What one user may ask for, at once and in a minute."""

import pytest

from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import UserId
from threadkeep.services import allowances
from threadkeep.services.allowances import Allowances

ALICE, BOB = UserId("alice"), UserId("bob")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_user_may_begin_as_many_as_allowed_and_again_after_a_while():
    clock = Clock()
    limits = Allowances(at_once=0, per_minute=3, clock=clock)
    for _ in range(3):
        limits.take(ALICE, 0)
    with pytest.raises(RateLimited, match="Try again in 20 s") as refused:
        limits.take(ALICE, 0)
    assert refused.value.retry_after_s == 20
    limits.take(BOB, 0)  # one user's haste is nobody else's
    clock.now += 20
    limits.take(ALICE, 0)
    with pytest.raises(RateLimited):
        limits.take(ALICE, 0)


def test_what_is_given_back_can_be_taken_again():
    limits = Allowances(at_once=0, per_minute=1, clock=Clock())
    limits.take(ALICE, 0)
    limits.give_back(ALICE)
    limits.give_back(BOB)  # who has taken nothing gets no more than everybody
    limits.take(ALICE, 0)
    limits.take(BOB, 0)
    for user in (ALICE, BOB):
        with pytest.raises(RateLimited):
            limits.take(user, 0)


def test_rest_saves_up_no_more_than_a_minute():
    clock = Clock()
    limits = Allowances(at_once=0, per_minute=2, clock=clock)
    clock.now += 3600
    for _ in range(2):
        limits.take(ALICE, 0)
    with pytest.raises(RateLimited):
        limits.take(ALICE, 0)


def test_too_many_at_once_are_refused():
    limits = Allowances(at_once=2, per_minute=0)
    limits.take(ALICE, 1)
    with pytest.raises(RateLimited) as refused:
        limits.take(ALICE, 2)
    assert refused.value.details == {"running": 2, "most": 2}


def test_zero_means_no_limit():
    limits = Allowances(at_once=0, per_minute=0)
    for running in range(10_000):
        limits.take(ALICE, running)


def test_users_who_are_quiet_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(allowances, "MOST_USERS", 3)
    clock = Clock()
    limits = Allowances(at_once=0, per_minute=1, clock=clock)
    for number in range(3):
        limits.take(UserId(f"user-{number}"), 0)
    clock.now += 61
    limits.take(ALICE, 0)
    with pytest.raises(RateLimited):
        limits.take(ALICE, 0)
