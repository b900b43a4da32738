"""A model at the gateway's port: it does what the user's message says, and fails as providers do.

A message such as `[m:ann-1] look+note; ask; say` tells it what to do in each call: tools, a question, words.
How many answers it has given since then says which call it is, so it answers the same whenever it is asked
the same, on any node.
"""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from tests.proof.simulation.loop import current_place
from tests.proof.simulation.trace import Trace
from threadkeep.domain.model import Model
from threadkeep.domain.money import Price
from threadkeep.ports.gateway import (
    GatewayUnavailable,
    ModelEvent,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    TextBlock,
    TextDelta,
    ToolResultBlock,
    ToolUse,
)

NAME = "sim"
PRICE = Price(input=1_000_000, output=5_000_000)
MARK = re.compile(r"\[m:([a-z0-9-]+)\] ([^\n]*)")


@dataclass(slots=True)
class ModelCall:
    """One call that the model got."""

    mark: str
    stage: int
    at: float
    input_tokens: int
    node: str
    ended_at: float | None = None
    output_tokens: int = 0
    status: str = "cut"
    """`answered` if it said what it used, `refused` if it costs nothing, else `cut`."""


@dataclass
class Provider:
    """The one model that all nodes call."""

    chance: random.Random
    trace: Trace
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    fails: float = 0.15
    """How many calls fail in some way."""

    def plan(self, request: ModelRequest) -> tuple[str, str, int]:
        """Who asked, what the model should do, and for the how-manieth time it is called since."""
        mark, wanted, stage = "", "say", 0
        for message in request.messages:
            if message.role == "assistant":
                stage += 1
                continue
            for block in message.blocks:
                if isinstance(block, TextBlock) and (found := MARK.search(block.text)):
                    mark, wanted, stage = found[1], found[2], 0
        stages = [it.strip() for it in wanted.split(";")]
        return mark, (stages[stage] if stage < len(stages) else "say"), stage


class SimulatedGateway:
    """A node's connection to it."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def describe(self, model: str) -> Model:
        return Model(
            gateway="default", name=model, context_tokens=100_000, max_output_tokens=2_000, price=PRICE
        )

    def signer(self, model: str) -> str:
        return model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        provider, chance = self._provider, self._provider.chance
        mark, wanted, stage = provider.plan(request)
        place, loop = current_place(), asyncio.get_running_loop()
        size = sum(len(str(block)) for message in request.messages for block in message.blocks) // 4 + 10
        call = ModelCall(mark, stage, loop.time(), size, place.name if place else "")
        provider.calls.append(call)
        provider.trace.add(call.node, "asks the model", f"{mark} call {stage}: {wanted}")
        how = self._how_it_goes(chance)
        try:
            await asyncio.sleep(chance.uniform(0.05, 0.6))
            if how == "refused":
                call.status = "refused"
                raise GatewayUnavailable("The provider is overloaded.", after_s=0.5)
            if how == "late":
                await asyncio.sleep(chance.uniform(3, 12))
            pieces = _pieces(mark, stage, wanted, chance)
            for at, piece in enumerate(pieces):
                if how == "broken" and at:
                    raise ReplyBrokeOff("The connection to the provider was lost.")
                if how == "hangs" and at:
                    await asyncio.sleep(10_000)
                if request.max_tokens is not None and call.output_tokens + len(piece) > request.max_tokens:
                    break
                call.output_tokens += len(piece)
                yield TextDelta(piece)
                await asyncio.sleep(chance.uniform(0.02, 0.4))
            for number, tool in enumerate(_tools(wanted)):
                id_ = f"{mark}-{stage}-{number}"
                name = {"ask": "ask_user"}.get(tool, f"world__{tool}")
                about = {"question": f"[m:{mark}] which?"} if tool == "ask" else {"about": id_}
                yield ToolUse(id_, name, about)
            call.status = "answered"
            yield ModelUsage(call.input_tokens, max(call.output_tokens, 1))
            yield ModelStopped("tool_use" if _tools(wanted) else "end_turn")
        finally:
            call.ended_at = loop.time()

    def _how_it_goes(self, chance: random.Random) -> str:
        if chance.random() >= self._provider.fails:
            return "well"
        return chance.choice(["refused", "broken", "hangs", "late", "late"])

    async def retire(self) -> None:
        """Nothing to close."""

    async def close(self) -> None:
        """Nothing to close."""


def _tools(wanted: str) -> Sequence[str]:
    return [it for it in wanted.split("+") if it in {"look", "note", "mark", "ask", "hang"}]


def _pieces(mark: str, stage: int, wanted: str, chance: random.Random) -> Sequence[str]:
    return [f"<{mark}:{stage}:{at}> " for at in range(chance.randint(1, 5) if wanted != "quiet" else 1)]


def results_of(request: ModelRequest) -> Sequence[ToolResultBlock]:
    """What a request tells the model of its calls."""
    return [b for m in request.messages for b in m.blocks if isinstance(b, ToolResultBlock)]
