"""The world outside: MCP servers and functions whose effects count, and agents in code that use them."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tests.proof.seen import HandOver, Seen
from tests.proof.simulation.loop import current_place
from tests.proof.simulation.model import MARK
from tests.proof.simulation.trace import Trace
from threadkeep.agents import (
    Agent,
    BudgetExceeded,
    LocalPrograms,
    ModelFailed,
    OutcomeUnknown,
    agent,
    step_key,
)
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Returned, Step, Tool
from threadkeep.wire.programs import ProgramLost

EFFECTS = {
    "look": ToolEffect.READ,
    "mark": ToolEffect.IDEMPOTENT,
    "note": ToolEffect.WRITE,
    "hang": ToolEffect.READ,
}
SCHEMA = {"type": "object", "properties": {"about": {"type": "string"}}}


class World:
    """What is outside all nodes, and counts."""

    def __init__(self, chance: random.Random, seen: Seen, trace: Trace) -> None:
        self._chance = chance
        self._seen = seen
        self._trace = trace

    async def do(self, key: str, name: str, about: str) -> str:
        """Something happens, at once; the answer takes a while."""
        place, now = current_place(), asyncio.get_running_loop().time()
        node = place.name if place else ""
        self._seen.hand_overs.append(HandOver(key, name, str(EFFECTS[name]), about, now, node))
        self._trace.add(node, f"WORLD {name}", f"{about} {key}")
        chance = self._chance.random()
        await asyncio.sleep(self._chance.uniform(0.02, 0.5) if chance < 0.8 else self._chance.uniform(1, 6))
        return f"{name} done for {about}"

    def agents(self) -> list[Agent]:
        """The agents in code of every node."""
        return [_clerk(self)]


class SimulatedServers:
    """An MCP server that every agent has, at the place of the pool's connections to it."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def tools(self, key: Any, server: Any) -> tuple[Tool, ...]:
        await asyncio.sleep(0.005)
        return tuple(
            Tool("world", name, f"Does {name}.", SCHEMA, 60.0, effect=it) for name, it in EFFECTS.items()
        )

    async def call(
        self, key: Any, server: Any, name: str, arguments: Mapping[str, Any], *, call_key: str = "", **_: Any
    ) -> AsyncGenerator[Step]:
        yield Returned("ok", await self._world.do(call_key, name, str(arguments.get("about"))))

    def statuses(self, agent_id: Any) -> Mapping[str, Any]:
        return {}

    def states(self) -> Sequence[Any]:
        return []

    def keep_only(self, agent_id: Any, names: Any) -> None:
        pass

    def users(self) -> set[Any]:
        return set()

    async def end_those_of(self, user_id: Any) -> None:
        pass

    def end_those_of_conversation(self, conversation_id: Any) -> None:
        pass

    async def close(self) -> None:
        pass


class InlinePrograms(LocalPrograms):
    """Agents in code on the one loop that there is, without a thread."""

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def close(self) -> None:
        self._is_closed = True
        for run in tuple(self._runs):
            run.lose()
            with suppress(ProgramLost):
                self.call_soon(run.function.cancel, "lost")
        await asyncio.sleep(0.01)


def _clerk(world: World) -> Agent:
    def step_of(name: str) -> Callable[[str], Awaitable[str]]:
        async def do(about: str) -> str:
            return await world.do(step_key(), name, about)

        return do

    async def one(turn: Any, mark: str, stage: int, wanted: str) -> None:
        about = f"{mark}-{stage}"
        match wanted:
            case "look" | "mark" | "note":
                try:
                    await turn.step(step_of(wanted), about, effect=EFFECTS[wanted].value, name=wanted)
                except OutcomeUnknown:
                    await turn.say(f"<{about}:unknown> ")
            case "ask":
                answer = await turn.ask(f"[m:{mark}] which?")
                await turn.say(f"<{about}:told {answer}> ")
            case "model":
                try:
                    reply = await turn.model(f"[m:{mark}] say")
                    await turn.say(f"<{about}:{len(reply.text)}> ")
                except (ModelFailed, BudgetExceeded):
                    await turn.say(f"<{about}:model failed> ")
            case "save":
                turn.state = {**turn.state, mark: stage}
                await turn.save(about)
            case "steer":
                await turn.say(f"<{about}:{len(await turn.steering())}> ")
            case _:
                await turn.say(f"<{about}> ")

    @agent(key="clerk", name="Clerk", visibility="public", timeout_s=25)
    async def clerk(turn: Any) -> str | None:
        found = MARK.search(turn.text)
        mark, wanted = (found[1], found[2]) if found else ("", "say")
        for stage, parts in enumerate(wanted.split(";")):
            names = [it.strip() for it in parts.split("+")]
            await asyncio.gather(*(one(turn, mark, stage, it) for it in names))
        return f"<{mark}:end>"

    return clerk
