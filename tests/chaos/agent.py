"""The agent in code of the people in the chaos: it asks, writes once, and says what it wrote."""

from pathlib import Path

from threadkeep.agents import OutcomeUnknown, Turn, agent, step_key

BOOK = Path("book.txt")  # what was written, a line each, by all nodes


def write(about: str) -> str:
    """Writes a line that cannot be taken back."""
    with BOOK.open("a") as book:
        book.write(f"{about} {step_key()}\n")
    return about


@agent(name="Bookkeeper", visibility="public", model="scripted/scripted")
async def bookkeeper(turn: Turn) -> str:
    """Runs one turn."""
    about = turn.text.split()[-1]
    await turn.say("I ask first. ")
    await turn.ask("May I?")
    try:
        await turn.step(write, about)
    except OutcomeUnknown:
        return f"Perhaps wrote {about}."
    return f"Wrote {about}."
