"""Functions whose course depends on timing, lost after every write and run again: they end as they did."""

import asyncio
import random

import pytest

from tests.agents.peer import Journal, Lost, Peer, Script, lose_everywhere, run_once
from threadkeep.agents import Agent, Turn, agent
from threadkeep.engine.code.claims import Diverged
from threadkeep.testing.waiting import until

PASSES = 8
"""How often a branch waits for others before it asks for its first step."""


async def quote(text: str) -> str:
    await asyncio.sleep(random.choice([0, 0, random.random() / 200]))
    return text * 2


async def fail(text: str) -> str:
    raise ValueError(text)


async def pause(text: str) -> str:
    await asyncio.sleep(0.005)
    return text


async def slow(text: str) -> str:
    await asyncio.sleep(30)
    return text


@agent()
async def races(turn: Turn) -> str:
    tasks = [asyncio.create_task(turn.step(quote, it, effect="read")) for it in "xyz"]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    won = sorted(it.result() for it in done)
    for it in pending:
        it.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return await turn.step(quote, won[0], effect="idempotent")


@agent()
async def takes_too_long(turn: Turn) -> str:
    try:
        async with asyncio.timeout(0.02):
            await turn.step(slow, "a", effect="read")
        how = "in time"
    except TimeoutError:
        how = "timeout"
    try:
        await turn.step(fail, "b", effect="read")
    except ValueError as exc:
        how += f" {exc}"
    return await turn.step(quote, how, effect="idempotent")


@agent()
async def works_in_the_background(turn: Turn) -> str:
    out: list[str] = []

    async def background() -> None:
        await asyncio.sleep(0.003)
        out.append(await turn.step(quote, "background", effect="read"))

    task = asyncio.create_task(background())
    for number in range(3):
        text = await turn.step(quote, str(number), effect="read")
        out.append(text)
    await task
    return await turn.step(quote, "+".join(out), effect="idempotent")


@agent()
async def takes_as_completed(turn: Turn) -> str:
    order: list[str] = []
    for it in asyncio.as_completed([turn.step(quote, it, effect="read") for it in "abcd"]):
        order.append(await it)
        await turn.step(quote, order[-1] + "!", effect="idempotent")
    return "".join(order)


@agent()
async def groups(turn: Turn) -> str:
    async def one(text: str) -> str:
        read = await turn.step(quote, text, effect="read")
        if text == "b":
            await turn.step(fail, text, effect="read")
        return await turn.step(quote, read, effect="read")

    try:
        async with asyncio.TaskGroup() as group:
            for it in "abc":
                group.create_task(one(it))
        how = "all"
    except* ValueError:
        how = "failed"
    return await turn.step(quote, how, effect="idempotent")


@agent()
async def races_with_one_that_asks_late(turn: Turn) -> str:
    async def late() -> str:
        for _ in range(PASSES):  # as a framework does that prepares a call
            await asyncio.wait([asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))])
        return await turn.step(slow, "late", effect="read")

    first = asyncio.create_task(turn.step(pause, "first", effect="read"))
    second = asyncio.create_task(late())
    await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    return await turn.step(quote, first.result(), effect="idempotent")


@agent()
async def asks_and_writes(turn: Turn) -> str:
    first, second = await asyncio.gather(turn.step(quote, "a", effect="read"), turn.ask("Which?"))
    await turn.say(f"{first} {second}.")
    return await turn.step(quote, f"{first}{second}", effect="write")


TIMING = [
    races,
    takes_too_long,
    works_in_the_background,
    takes_as_completed,
    groups,
    races_with_one_that_asks_late,
]


@pytest.mark.parametrize("it", TIMING, ids=lambda it: it.key)
async def test_what_depends_on_timing_goes_as_it_went(it: Agent):
    for _ in range(3):
        whole, journal = await run_once(it)
        assert whole.status == "completed", whole
        again = await Peer(it, journal, Script()).end()
        assert again == whole
        assert not journal.repeated


@pytest.mark.parametrize("it", TIMING, ids=lambda it: it.key)
async def test_what_depends_on_timing_ends_wherever_it_is_lost(it: Agent):
    _, journal = await run_once(it)
    for position in range(1, journal.writes + 1):
        again = Journal()
        with pytest.raises(Lost):
            await Peer(it, again, Script(lose_after=position)).end()
            raise Lost  # it went another way, and had fewer writes
        end = await Peer(it, again, Script()).end()
        assert end.status == "completed"
        assert not again.repeated


async def test_a_write_that_was_cut_off_is_never_repeated():
    found = await lose_everywhere(asks_and_writes, answers={"Which?": "b"})
    assert found.whole.text == "aabaab"
    assert found.unknown == 1
    assert not found.differ
    assert not found.repeated


async def test_changed_code_is_found_before_it_does_anything():
    steps = ["a", "b"]

    @agent()
    async def changes(turn: Turn) -> str:
        return "".join([await turn.step(quote, it) for it in steps])

    _, journal = await run_once(changes)
    steps[1] = "c"
    begun = dict(journal.begun)
    peer = Peer(changes, journal, Script())
    ending = asyncio.create_task(peer.end())
    await until(lambda: len(peer.claimed) == 2)
    assert journal.begun == begun
    await peer.cancelled("diverged")
    await ending


async def test_code_that_asks_for_less_than_is_recorded_diverges():
    steps = ["a", "b"]

    @agent()
    async def changes(turn: Turn) -> str:
        return "".join([await turn.step(quote, it) for it in steps])

    _, journal = await run_once(changes)
    steps.pop()
    with pytest.raises(Diverged):
        await Peer(changes, journal, Script()).end()
