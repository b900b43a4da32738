"""A model that speaks as the question asks: `300 pieces, 20 a second`. Each piece says when it was sent.

It prints its address and runs until it is ended.
"""

import asyncio
import re

import uvloop

from threadkeep.testing.script import Pause, Reply, SayTime
from threadkeep.testing.scripted_model import Recorded, ScriptedModel

FEW = 20, 200

_ASKED = re.compile(rb"(\d+) pieces, (\d+) a second")


def question(pieces: int, rate: int) -> str:
    """A question whose reply has so many pieces, so many a second."""
    return f"{pieces} pieces, {rate} a second"


def speak(request: Recorded) -> Reply:
    """Does what the last question says; whoever asks for something else, such as a summary, gets a few."""
    pieces, rate = map(int, (_ASKED.findall(request.content) or [FEW])[-1])
    return [Pause(1 / rate), SayTime()] * pieces


async def main() -> None:
    """Listens until the process ends."""
    model = ScriptedModel(otherwise=speak, records=False)
    await model.listen()
    print(model.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
