"""No protocol's encoder costs more per event than that of AgentX, in the same run."""

from collections.abc import Callable

import pytest

from tests.costs.measuring import measure
from tests.costs.paths import PIECES, Run
from tests.protocols.recorded import BEGINNING, COMPLETED, CONTEXT, turn
from threadkeep.domain.events import EventBody, IterationStart, Text, Thought, TurnEvent, TurnStart
from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.parts import Reader

Encode = Callable[[TurnEvent], bytes]

WORDS: list[EventBody] = [Text("word "), Thought("thought ")] * (PIECES // 2)
TURNS = {
    "pieces of text and thought in turn": turn(
        TurnStart("c1", "m1", "m2", "scripted"), IterationStart(1), *WORDS, COMPLETED
    ),
    "a turn with everything in it": turn(*BEGINNING, COMPLETED),
}
ENCODERS: dict[str, Callable[[], Encode]] = {
    f"AI SDK {version}": lambda version=version: (
        UIMessageStream(CONTEXT, Reader(version, "http://here")).encode
    )
    for version in (5, 6, 7)
}


async def instructions(start: Callable[[], Encode], events: list[TurnEvent]) -> int:
    """What encoding a turn costs."""

    async def prepare() -> Run:
        encode = start()

        async def run() -> None:
            for event in events:
                encode(event)

        return run

    return (await measure(prepare)).instructions


@pytest.mark.parametrize("events", TURNS.values(), ids=TURNS)
async def test_no_encoder_costs_more_than_that_of_agentx(events: list[TurnEvent]):
    most = await instructions(lambda: AGENTX.start(CONTEXT).encode, events)
    costs = {name: await instructions(start, events) for name, start in ENCODERS.items()}
    assert {name: cost for name, cost in costs.items() if cost > most} == {}, f"AgentX: {most}"
