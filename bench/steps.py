"""What a step of an agent in code takes, with Threadkeep in this process.

A step that reads stands beside a bare crossing from the agents' event loop to the server's and back. A step
that writes is timed, and what it stores is counted. The agents time themselves.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.conftest import secret_key_for

from bench.databases import empty_database
from bench.measure import Block, Effort, compare_blocks, race
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
    blocks: dict[str, list[Block]] = {}
    times_ms: list[float] = []
    reads, writes = _reads(min(effort.step_rounds, MOST_ROUNDS), blocks), _writes(times_ms)
    with empty_database(database) as url:
        async with _served(url, [reads, writes]) as app:
            await _run(app, reads)
            commits = [await _commits(app, writes) / WRITES for _ in range(effort.piece_rounds)]
    return [
        Line("a read step", compare_blocks(blocks["crossing"], blocks["step"]), READ_AIM),
        Line("a read step against two bare wake-ups", compare_blocks(blocks["waking"], blocks["step"])),
        Times.of("a write step", times_ms, "ms"),
        Times.of("commits of a write step", commits, "", COMMITS_AIM),
    ]


def _reads(rounds: int, blocks: dict[str, list[Block]]) -> Agent:
    """An agent whose steps read, in blocks that alternate with bare crossings."""
    server = asyncio.get_running_loop()

    async def cross() -> None:
        """Awaits something on the server's loop, as the standard library does."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(nothing(), server))

    async def wake() -> None:
        """To the server's loop and back, as bare as two loops can do it."""
        here = asyncio.get_running_loop()
        back = here.create_future()
        server.call_soon_threadsafe(here.call_soon_threadsafe, back.set_result, None)
        await back

    @agent(visibility="public")
    async def reads(turn: Turn) -> str:
        async def step() -> None:
            await turn.step(nothing, effect="read")

        for _ in range(WARM_STEPS):
            await step()
        calls = {"crossing": cross, "waking": wake, "step": step}
        blocks.update(await race(calls, rounds=rounds, times=STEPS_A_BLOCK))
        return "Done."

    return reads


def _writes(times_ms: list[float]) -> Agent:
    """An agent whose steps change something."""

    @agent(visibility="public")
    async def writes(turn: Turn) -> str:
        for _ in range(WRITES):
            begun = time.perf_counter()
            await turn.step(nothing, effect="write")
            times_ms.append((time.perf_counter() - begun) * 1000)
        return "Done."

    return writes


async def nothing() -> None:
    """What the steps do."""


@asynccontextmanager
async def _served(url: str, agents: Sequence[Agent]) -> AsyncGenerator[RunningApp]:
    key = secret_key_for(url)
    async with running_app(agents=agents, database_url=url, secret_key=key, embedding_url="off") as app:
        yield app


async def _commits(app: RunningApp, code: Agent) -> int:
    """How many transactions wrote something of a turn's steps to its log."""
    log = (await app.app.services()).store.log
    append, count = log.append, 0

    async def counted(chunks: Sequence[Any], *others: Any) -> Any:
        nonlocal count
        count += any('"type":"step' in chunk.events for chunk, _ in chunks)
        return await append(chunks, *others)

    vars(log)["append"] = counted
    await _run(app, code)
    del vars(log)["append"]
    return count


async def _run(app: RunningApp, code: Agent) -> None:
    """One turn of an agent."""
    ids = [it.id async for it in app.client.agents() if it.engine.key == code.key]
    conversation = await app.client.create_conversation(ids[0], title="Measured")
    reply = await app.client.ask(conversation.id, "Begin.")
    assert str(reply.content) == "Done.", reply
