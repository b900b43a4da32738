"""A request that is cancelled while its turn is taken from the allowance gives it back."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.making import ALICE, NOW, keep_agent, keep_conversation
from threadkeep.domain.caps import NO_CAPS, TurnCaps
from threadkeep.domain.user import User
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.creations import Creations
from threadkeep.services.replies.turn_starts import TurnStarts
from threadkeep.storage.store import Store


class SlowAllowances(LocalAllowances):
    """Allowances whose answers come late."""

    def __init__(self) -> None:
        super().__init__(TurnCaps(per_minute=1))
        self.has_taken, self.answers = asyncio.Event(), asyncio.Event()

    async def take_turn(self, *args: Any, **options: Any) -> None:
        """Takes a turn, and says so late."""
        await super().take_turn(*args, **options)
        self.has_taken.set()
        await self.answers.wait()


async def nothing(*_: object) -> None:
    """Whatever is asked."""


def nobody_runs(*_: object, **__: object) -> int:
    """No turn of the user runs."""
    return 0


async def test_cancelled_request_gives_back_its_turn(store: Store):
    agent = await keep_agent(store)
    begun = (await keep_conversation(store, agent)).begin_turn("?", NOW)
    allowances = SlowAllowances()
    runner = SimpleNamespace(is_draining=False, count_of=nobody_runs, begin=nothing, programs=None)
    replies = SimpleNamespace(equipment=SimpleNamespace(spending=SimpleNamespace(check=nothing)))
    creations = Creations(store.stored_bytes, allowances, NO_CAPS)
    starts = TurnStarts(
        store, cast("Any", runner), cast("Any", replies), cast("Any", None), allowances, creations
    )

    async def begin() -> None:
        async with starts.claim(User(ALICE)) as claim:
            await starts.begin(User(ALICE), agent, begun, claim)

    starting = asyncio.create_task(begin())
    await allowances.has_taken.wait()
    starting.cancel()
    await asyncio.sleep(0)
    allowances.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await begin()  # the only one of this minute
