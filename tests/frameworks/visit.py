"""A visit to the shop: a refund that is approved, a question about it, and another answer to the question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tests.frameworks.shop import REFUNDED, REMEMBERED, WHICH
from threadkeep.client import Client
from threadkeep.testing.agents import AgentRun, Course, StepRuns

ANSWERS = ("allow",)
SAID = " ".join((REFUNDED, REMEMBERED, REMEMBERED))
"""All that the shop says in a visit, in one line."""
TURNS = 3


class Visit(Course):
    """Three turns, in as many Threadkeeps as it takes; what is sent twice counts once."""

    _runs: Sequence[AgentRun] = ()
    """Of the turns that have ended."""

    async def run(self, client: Client, text: str) -> AgentRun:
        """Goes on where the visit was cut off, to its end."""
        while True:
            self._runs = (*self._runs, await super().run(client, text))
            if len(self._runs) == TURNS:
                return together(self._runs)
            self.turn_id = ""

    async def _start(self, client: Client, text: str) -> None:
        id_ = self._conversation_id
        match len(self._runs):
            case 0:
                await super()._start(client, text)
            case 1:
                self.turn_id = (await client.start(id_, WHICH, idempotency_key=f"{id_} ask")).turn_id
            case _:
                again = client.regenerate(id_, idempotency_key=f"{id_} again")
                self.turn_id = (await anext(again)).turn_id
                await again.aclose()


def together(runs: Sequence[AgentRun]) -> AgentRun:
    """Several turns as if they were one; it has failed if one has."""
    steps: dict[str, StepRuns] = {}
    for run in runs:
        for name, ran in run.steps.items():
            earlier = steps[name].statuses if name in steps else ()
            steps[name] = StepRuns(ran.count, (*earlier, *ran.statuses))
    worst = next((it for it in runs if it.status != "COMPLETED"), runs[-1])
    return replace(
        worst,
        text="\n".join(it.text for it in runs),
        parts=[part for run in runs for part in in_one_order(run.parts)],
        steps=steps,
    )


def in_one_order(parts: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Parts with calls that follow each other by name: parallel ones begin as their threads happen to."""
    for is_call, group in groupby(parts, lambda it: it["type"] == "tool_call"):
        some = list(group)
        yield from sorted(some, key=lambda it: it["toolName"]) if is_call else some
