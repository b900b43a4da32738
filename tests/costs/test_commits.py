"""How often steps of agents in code wait for the database, on each of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import secret_key_for
from threadkeep.agents import Agent, Turn, agent
from threadkeep.testing import RunningApp, running_app, until

WRITES = 20


class Commits:
    """What a node commits to its turns' logs; those that end a step wait at a gate."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.ends_may_be_stored = asyncio.Event()

    async def watch(self, app: RunningApp) -> None:
        """Looks at each commit before it is made."""
        log = (await app.app.services()).store.log
        append = log.append

        async def watched(chunks: Sequence[Any], *others: Any) -> Any:
            entries = "".join(chunk.events for chunk, _ in chunks)
            if '"step_end"' in entries:
                await self.ends_may_be_stored.wait()
            accepted = await append(chunks, *others)
            self.stored.append(entries)
            return accepted

        vars(log)["append"] = watched


async def run(app: RunningApp, code: Agent) -> str:
    """One turn of an agent; the text of its reply."""
    ids = [it.id async for it in app.client.agents() if it.engine.key == code.key]
    conversation = await app.client.create_conversation(ids[0], title="Test")
    return str((await app.client.ask(conversation.id, "Begin.")).content)


@pytest.fixture
def on_database(database_url: str) -> dict[str, Any]:
    return {
        "database_url": database_url,
        "secret_key": secret_key_for(database_url),
        "embedding_url": "off",
    }


async def test_a_write_waits_for_the_commit_of_its_begin_and_not_for_that_of_its_end(
    on_database: dict[str, Any],
):
    commits = Commits()
    stored_before_it_ran: list[str] = []
    results: list[str] = []

    async def write() -> str:
        stored_before_it_ran.extend(commits.stored)
        return "written"

    @agent(visibility="public")
    async def writer(turn: Turn) -> str:
        results.append(await turn.step(write))
        return "Done."

    async with running_app(agents=[writer], **on_database) as app:
        await commits.watch(app)
        turn = asyncio.create_task(run(app, writer))
        await until(lambda: bool(results))
        assert sum('"step"' in it for it in stored_before_it_ran) == 1
        assert not any('"step_end"' in it for it in commits.stored)
        commits.ends_may_be_stored.set()
        assert await turn == "Done."


async def test_a_write_takes_two_commits(on_database: dict[str, Any]):
    commits = Commits()
    commits.ends_may_be_stored.set()

    async def write() -> None:
        """Changes something."""

    @agent(visibility="public")
    async def writer(turn: Turn) -> str:
        for _ in range(WRITES):
            await turn.step(write)
        return "Done."

    async with running_app(agents=[writer], **on_database) as app:
        await commits.watch(app)
        assert await run(app, writer) == "Done."
    assert sum('"type":"step' in it for it in commits.stored) <= 2 * WRITES
