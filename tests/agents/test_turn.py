"""A turn, as an agent's function uses it: against a server in memory."""

import asyncio

from tests.agents.peer import lose_everywhere, run_once
from threadkeep.agents import Turn, agent


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


async def test_a_step_returns_its_value_and_the_turn_what_the_function_returns():
    @agent()
    async def doubling(turn: Turn) -> str:
        return f"{turn.text} {await turn.step(double, 2)}"

    end, journal = await run_once(doubling, text="two")
    assert (end.status, end.text) == ("completed", "two 4")
    assert journal.writes == 2


async def test_a_function_that_is_lost_anywhere_ends_the_same():
    @agent()
    async def doubling(turn: Turn) -> str:
        results = await asyncio.gather(*(turn.step(double, it, effect="read") for it in (1, 2, 3)))
        await turn.say(f"Read {results}. ")
        if await turn.ask("Go on?", choices=["yes", "no"]) == "yes":
            return f"Wrote {await turn.step(double, 4, effect='idempotent')}."
        return "Left it."

    found = await lose_everywhere(doubling, answers={"Go on?": "yes"})
    assert found.whole.text == "Wrote 8."
    assert found.journal.text == "Read [2, 4, 6]. "
    assert not found.differ
    assert not found.repeated
