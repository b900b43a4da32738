"""What a step of an agent in code takes, with Threadkeep in this process.

A step that reads stands beside a bare crossing from the agents' event loop to the server's and back. A step
that writes is timed, and what it stores is counted. The agents time themselves.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from tests.conftest import secret_key_for

from bench.databases import empty_database
from bench.measure import Block, Comparison, Effort, compare_blocks, race
from bench.table import Aim, Line, Row, Times
from threadkeep.agents import Agent, Turn, agent
from threadkeep.testing import RunningApp, running_app

STEPS_A_BLOCK, WARM_STEPS = 25, 50
WRITES = 200
MOST_ROUNDS = (1_000 - WARM_STEPS) // STEPS_A_BLOCK
"""A turn has a thousand steps at most."""
READ_AIM, COMMITS_AIM = Aim("≤", 4), Aim("≤", 2, "P50")


async def measure(effort: Effort, database: str) -> Sequence[Row]:
    """Steps of one turn after the other; nothing else runs."""
    reads, writes = Reads(min(effort.step_rounds, MOST_ROUNDS)), Writes()
    with empty_database(database) as url:
        async with _served(url, [reads.agent, writes.agent]) as app:
            await _run(app, reads.agent)
            commits = [await _commits(app, writes.agent) / WRITES for _ in range(effort.piece_rounds)]
    return [
        Line("a read step", reads.comparison, READ_AIM),
        Times.of("a write step", writes.times_ms, "ms"),
        Times.of("commits of a write step", commits, "", COMMITS_AIM),
    ]


class Reads:
    """An agent that runs steps and crossings in alternating blocks."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._server = asyncio.get_running_loop()
        self._blocks: Mapping[str, Sequence[Block]] = {}
        self.agent = agent(key="reads", visibility="public")(self._read)

    @property
    def comparison(self) -> Comparison:
        """Steps against crossings."""
        return compare_blocks(self._blocks["crossing"], self._blocks["step"])

    async def _read(self, turn: Turn) -> str:
        async def step() -> None:
            await turn.step(nothing, effect="read")

        for _ in range(WARM_STEPS):
            await step()
        calls = {"crossing": self._cross, "step": step}
        self._blocks = await race(calls, rounds=self._rounds, times=STEPS_A_BLOCK)
        return "Done."

    async def _cross(self) -> None:
        """To the server's loop and back, as bare as two loops can do it."""
        here = asyncio.get_running_loop()
        back = here.create_future()
        self._server.call_soon_threadsafe(here.call_soon_threadsafe, back.set_result, None)
        await back


class Writes:
    """An agent whose steps change something."""

    def __init__(self) -> None:
        self.times_ms: list[float] = []
        self.agent = agent(key="writes", visibility="public")(self._write)

    async def _write(self, turn: Turn) -> str:
        for _ in range(WRITES):
            begun = time.perf_counter()
            await turn.step(nothing, effect="write")
            self.times_ms.append((time.perf_counter() - begun) * 1000)
        return "Done."


async def nothing() -> None:
    """What the steps do."""


@asynccontextmanager
async def _served(url: str, agents: Sequence[Agent]) -> AsyncGenerator[RunningApp]:
    settings = {"database_url": url, "secret_key": secret_key_for(url), "embedding_url": "off"}
    async with running_app(agents=agents, **settings) as app:
        yield app


async def _commits(app: RunningApp, code: Agent) -> int:
    """How many transactions wrote something while a turn ran: those of its begin and end, too."""
    latency = (await app.app.services()).metrics.store_latency["write"]
    before = sum(latency.counts)
    await _run(app, code)
    return sum(latency.counts) - before


async def _run(app: RunningApp, code: Agent) -> None:
    """One turn of an agent."""
    ids = [it.id async for it in app.client.agents() if it.engine.key == code.key]
    conversation = await app.client.create_conversation(ids[0], title="Measured")
    reply = await app.client.ask(conversation.id, "Begin.")
    assert str(reply.content) == "Done.", reply
