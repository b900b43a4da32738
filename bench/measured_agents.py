"""The agents in code that are measured: `threadkeep serve --agents bench.measured_agents:AGENTS`."""

import asyncio
import re
import time

from threadkeep.agents import Turn, agent

RECALLED = 999
"""Steps of a turn that asks its user afterwards: a thousand with the question."""

_ASKED = re.compile(r"(\d+) \w+, (\d+) a second")


async def noted_time() -> float:
    """When the step ended."""
    return time.monotonic()


async def numbered(number: int) -> int:
    """A small result."""
    return number


@agent(name="Speaking", visibility="public")
async def speaking(turn: Turn) -> None:
    """Says when it speaks, as the scripted model does that is asked for the same."""
    pieces, rate = _asked(turn)
    for _ in range(pieces):
        await asyncio.sleep(1 / rate)
        await turn.say(f"{time.monotonic():.6f} ")


@agent(name="Stepping", visibility="public")
async def stepping(turn: Turn) -> str:
    """Takes so many steps a second; returns how many milliseconds each result took to arrive."""
    steps, rate = _asked(turn)
    begun, lags_ms = time.monotonic(), list[float]()
    for number in range(steps):
        await asyncio.sleep(max(0, begun + number / rate - time.monotonic()))
        ended = await turn.step(noted_time, effect="read")
        lags_ms.append((time.monotonic() - ended) * 1000)
    return " ".join(f"{it:.3f}" for it in lags_ms)


@agent(name="Recalling", visibility="public")
async def recalling(turn: Turn) -> str:
    """Asks its user after many steps; returns when the answer arrived, once all of them were recalled."""
    for number in range(RECALLED):
        await turn.step(numbered, number, effect="read")
    await turn.ask("Go on?")
    return f"{time.monotonic():.6f}"


@agent(name="Blocking", visibility="public")
async def blocking(turn: Turn) -> str:
    """Keeps the event loop of all agents for a second, as no agent should: it sleeps, or it spins."""
    until = time.monotonic() + 1
    if turn.text == "sleep":
        time.sleep(1)  # noqa: ASYNC251 - this is what is measured
    while time.monotonic() < until:
        pass
    return "Done."


def _asked(turn: Turn) -> tuple[int, int]:
    """How many, and how many a second, of a question such as "200 pieces, 20 a second"."""
    found = _ASKED.fullmatch(turn.text)
    assert found is not None, turn.text
    return int(found[1]), int(found[2])


AGENTS = [speaking, stepping, recalling, blocking]
