"""Slots are given in turn to all who wait."""

import asyncio

import pytest

from threadkeep.domain.ids import UserId
from threadkeep.fair_slots import FairSlots

ALICE, BOB, CAROL = UserId("alice"), UserId("bob"), UserId("carol")


class Workshop:
    """Work that lasts until a test ends it, in the order in which it was begun."""

    def __init__(self, at_once: int, of_one: int | None = None) -> None:
        self.slots = FairSlots(at_once, of_one=of_one)
        self.begun: list[str] = []
        self.ended = asyncio.Semaphore(0)

    def send(self, user: UserId, count: int = 1) -> "list[asyncio.Task[None]]":
        return [asyncio.create_task(self._work(user)) for _ in range(count)]

    async def _work(self, user: UserId) -> None:
        async with self.slots.slot(user):
            self.begun.append(user)
            await self.ended.acquire()

    async def settle(self, *, end: int = 0) -> list[str]:
        """Ends some of the work; returns what has begun by then."""
        for _ in range(end):
            self.ended.release()
        for _ in range(20 * (end + 1)):
            await asyncio.sleep(0)
        return self.begun


async def test_other_user_is_not_behind_sixteen_files_of_the_first():
    work = Workshop(at_once=2)
    tasks = work.send(ALICE, 16)
    assert await work.settle() == [ALICE] * 2
    tasks += work.send(BOB, 2) + work.send(CAROL)
    assert await work.settle(end=1) == [ALICE, ALICE, BOB]
    assert await work.settle(end=1) == [ALICE, ALICE, BOB, CAROL]
    await work.settle(end=17)
    assert work.begun[4:6] == [BOB, ALICE] or work.begun[4:6] == [ALICE, BOB]
    assert len(work.begun) == 19
    await asyncio.gather(*tasks)


async def test_nobody_has_more_slots_than_one_user_may_have():
    work = Workshop(at_once=2, of_one=1)
    tasks = work.send(ALICE, 3)
    assert await work.settle() == [ALICE]
    tasks += work.send(BOB, 2)
    assert await work.settle() == [ALICE, BOB]
    assert len(await work.settle(end=1)) == 3
    await work.settle(end=4)
    assert sorted(work.begun) == [ALICE] * 3 + [BOB] * 2
    await asyncio.gather(*tasks)


async def test_no_more_work_at_once_than_slots_and_none_is_forgotten():
    work = Workshop(at_once=3)
    tasks = [task for user in (ALICE, BOB, CAROL) for task in work.send(user, 5)]
    for ended in range(16):
        assert len(await work.settle(end=bool(ended))) == min(3 + ended, 15)
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("moment", ["waiting", "served in the same moment"])
async def test_who_leaves_takes_no_slot_along(moment: str):
    work = Workshop(at_once=1)
    (first,) = work.send(ALICE)
    await work.settle()
    (leaving,), (staying,) = work.send(BOB), work.send(CAROL)
    await work.settle()
    if moment == "waiting":
        leaving.cancel()
    else:
        first.cancel()
        await asyncio.sleep(0)  # now the second has its turn, but hasn't noticed
        leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await work.settle(end=moment == "waiting") == [ALICE, CAROL]
    (last,) = work.send(BOB)
    assert await work.settle(end=1) == [ALICE, CAROL, BOB]
    await work.settle(end=1)
    await asyncio.gather(staying, last)
