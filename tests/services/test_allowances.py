"""What one user may ask for, at once and in a minute, counted in the process."""

import pytest

from threadkeep.domain.caps import TurnCaps
from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import TurnId, UserId, new_uuid
from threadkeep.ports.allowances import HELD_S, ReplyPlace
from threadkeep.services import allowances
from threadkeep.services.allowances import LocalAllowances

ALICE, BOB = UserId("alice"), UserId("bob")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def take(limits: LocalAllowances, user: UserId = ALICE, running: int = 0) -> None:
    await limits.take_turn(user, TurnId(new_uuid()), running)


async def test_user_may_begin_as_many_as_allowed_and_again_after_a_while():
    clock = Clock()
    limits = LocalAllowances(TurnCaps(per_minute=3), clock)
    for _ in range(3):
        await take(limits)
    with pytest.raises(RateLimited, match="Try again in 20 s") as refused:
        await take(limits)
    assert refused.value.retry_after_s == 20
    assert refused.value.details == {"limit": "turnsPerMinute", "most": 3}
    await take(limits, BOB)  # one user's haste is nobody else's
    clock.now += 20
    await take(limits)
    with pytest.raises(RateLimited):
        await take(limits)


async def test_what_is_given_back_can_be_taken_again():
    limits = LocalAllowances(TurnCaps(per_minute=1), Clock())
    await take(limits)
    await limits.give_turn_back(ALICE, TurnId(new_uuid()))
    await limits.give_turn_back(BOB, TurnId(new_uuid()))  # who has taken nothing gets no more than everybody
    for user in (ALICE, BOB):
        await take(limits, user)
        with pytest.raises(RateLimited):
            await take(limits, user)


async def test_rest_saves_up_no_more_than_a_minute():
    clock = Clock()
    limits = LocalAllowances(TurnCaps(per_minute=2), clock)
    clock.now += 3600
    for _ in range(2):
        await take(limits)
    with pytest.raises(RateLimited):
        await take(limits)


async def test_call_outside_a_turn_counts_in_the_minute_however_many_run():
    limits = LocalAllowances(TurnCaps(at_once=1, per_minute=2), Clock())
    await limits.take_call(ALICE)
    await take(limits)
    with pytest.raises(RateLimited):
        await limits.take_call(ALICE)


async def test_too_many_at_once_are_refused():
    limits = LocalAllowances(TurnCaps(at_once=2))
    await take(limits, running=1)
    with pytest.raises(RateLimited) as refused:
        await take(limits, running=2)
    assert refused.value.details == {"limit": "runningTurns", "most": 2}


async def test_zero_means_no_limit():
    limits = LocalAllowances(TurnCaps())
    for running in range(10_000):
        await take(limits, running=running)


async def test_users_who_are_quiet_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(allowances, "MOST_KNOWN", 3)
    clock = Clock()
    limits = LocalAllowances(TurnCaps(per_minute=1), clock)
    for number in range(3):
        await take(limits, UserId(f"user-{number}"))
    clock.now += 61
    await take(limits)
    with pytest.raises(RateLimited):
        await take(limits)


async def test_turn_takes_no_place_beyond_those_that_its_user_may_have():
    limits = LocalAllowances(TurnCaps(at_once=1))
    with pytest.raises(RateLimited):
        await limits.take_turn(ALICE, TurnId(new_uuid()), 1)
    await limits.take_turn(ALICE, TurnId(new_uuid()), 0, after=TurnId(new_uuid()))


async def test_uploads_have_a_rate_of_their_own_counted_in_files():
    clock = Clock()
    limits = LocalAllowances(TurnCaps(per_minute=1, uploads_per_minute=6), clock)
    await limits.take_uploads(ALICE, 5)
    await take(limits)
    with pytest.raises(RateLimited, match=r"6 files per minute\. Try again in 10 s") as refused:
        await limits.take_uploads(ALICE, 2)
    assert refused.value.details == {"limit": "uploadsPerMinute", "most": 6}
    await limits.take_uploads(ALICE, 1)  # a refusal has taken nothing
    await limits.take_uploads(BOB, 100)  # more than fit into a minute take all of it
    clock.now += 10
    await limits.take_uploads(BOB, 1)
    with pytest.raises(RateLimited):
        await limits.take_uploads(BOB, 1)


async def test_reply_outside_a_conversation_counts_like_a_turn():
    clock = Clock()
    limits = LocalAllowances(TurnCaps(at_once=2, per_minute=4), clock)
    first, second = (ReplyPlace(ALICE, new_uuid()) for _ in range(2))
    await limits.take_reply(first, 1)
    for refused in (limits.take_reply(second, 1), take(limits, running=1)):
        with pytest.raises(RateLimited, match="2 turns running"):
            await refused
    await take(limits, BOB, 1)
    await limits.take_reply(second, 0)
    await limits.give_reply_back(first)
    await take(limits, running=0)
    clock.now += HELD_S - 1
    await limits.renew_replies([first, second])  # what was given back stays so
    clock.now += HELD_S - 1
    await take(limits, running=0)
    with pytest.raises(RateLimited, match="2 turns running"):
        await take(limits, running=1)
    clock.now += 2  # nobody has renewed it
    await take(limits, running=1)


async def test_writes_have_a_rate_of_their_own():
    clock = Clock()
    limits = LocalAllowances(TurnCaps(per_minute=1, writes_per_minute=2), clock)
    for _ in range(2):
        await limits.take_write(ALICE)
    with pytest.raises(RateLimited, match="2 things per minute") as refused:
        await limits.take_write(ALICE)
    assert refused.value.details == {"limit": "writesPerMinute", "most": 2}
    assert refused.value.retry_after_s == 30
    await limits.take_write(BOB)
    await take(limits)
    clock.now += 30
    await limits.take_write(ALICE)
