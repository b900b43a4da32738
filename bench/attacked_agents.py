"""Agents in code as operators write them, whose turns cost much: `--agents bench.attacked_agents:AGENTS`."""

from threadkeep.agents import Turn, agent
from threadkeep.engine.large_values import MOST_INLINE_BYTES

STEPS = 999
"""As many as a turn can have, with its question or its last words."""
QUESTIONS = 40
FILE = b"a file that is large " * 1_500_000
"""31.5 MB, nearly as much as a turn can attach."""


async def large(number: int) -> str:
    """As large a result as a turn's log holds by itself."""
    return f"{number} ".ljust(MOST_INLINE_BYTES - 2, "x")


async def small(number: int) -> int:
    """A small one."""
    return number


@agent(name="Hoarder", visibility="public")
async def hoarder(turn: Turn) -> str:
    """Takes many steps with large results."""
    for number in range(STEPS):
        await turn.step(large, number, effect="read")
    return "Done."


@agent(name="Busybody", visibility="public")
async def busybody(turn: Turn) -> str:
    """Takes many steps that change something, without a pause."""
    for number in range(STEPS):
        await turn.step(small, number, effect="write" if number % 2 else "read")
    return "Done."


@agent(name="Inquirer", visibility="public")
async def inquirer(turn: Turn) -> str:
    """Asks again and again after many steps: each answer runs it again from the top."""
    for number in range(STEPS - QUESTIONS):
        await turn.step(small, number, effect="read")
    for number in range(QUESTIONS):
        await turn.ask(f"Question {number}?")
    return "Done."


@agent(name="Publisher", visibility="public")
async def publisher(turn: Turn) -> str:
    """Attaches a large file."""
    await turn.attach("large.txt", FILE)
    return "Done."


AGENTS = [hoarder, busybody, inquirer, publisher]
