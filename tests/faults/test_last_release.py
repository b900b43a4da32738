"""Nodes of the last release and of this version serve one database under load, whichever ends first."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.faults.last_release import VERSION, install_last_release
from tests.faults.scene import Away, Person, agent_settings, check_end, converse, desk, paced_reply_to
from tests.faults.test_killed_servers import settings_for
from tests.postgres import Postgres
from tests.serving import SOURCE, Server
from threadkeep.testing import ScriptedModel, ToolServer
from threadkeep.testing.waiting import PATIENCE_S, until

PEOPLE = 4
TURNS = 2
"""How many turns somebody has to complete before the next node is replaced."""


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_last_release(tmp_path_factory.mktemp("release"))


@dataclass
class Fleet:
    """Nodes of both versions, and people who talk to whichever takes them."""

    folder: Path
    settings: dict[str, str]
    last_release: Path
    model: ScriptedModel
    tools: ToolServer
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    nodes: list[Server] = field(default_factory=list[Server])
    clients: dict[Server, httpx.AsyncClient] = field(default_factory=dict[Server, httpx.AsyncClient])
    completed: list[Person] = field(default_factory=list[Person])
    chance: random.Random = field(default_factory=lambda: random.Random(43))
    is_over: bool = False

    async def start(self, version: str) -> Server:
        """Another node, of the last release or of this version."""
        source = self.last_release if version == VERSION else SOURCE
        node = await asyncio.to_thread(Server, self.folder, source=source, **self.settings)
        self.stack.enter_context(node)
        client = self.clients[node] = await self.stack.enter_async_context(node.async_client())
        said = (await client.get("/readyz")).headers["threadkeep-version"]
        assert (said == VERSION) == (version == VERSION), said
        self.nodes.append(node)
        return node

    async def end(self, node: Server, how: signal.Signals) -> None:
        """Ends a node; the others go on."""
        self.nodes.remove(node)
        node.process.send_signal(how)
        await asyncio.to_thread(node.wait)

    async def live(self, agent: str, name: str) -> None:
        """One turn after the other, at one node after the other."""
        for number in count():
            if self.is_over:
                return
            person: Person | None = None
            async with asyncio.timeout(3 * PATIENCE_S):
                while person is None or not person.is_done:
                    http = self.clients[self.chance.choice(self.nodes)]
                    try:
                        person = person or await Person.meet(http, agent, f"{name}-{number}")
                        await person.talk(http)
                    except (httpx.HTTPError, Away):
                        await asyncio.sleep(0.1)
            self.completed.append(person)

    async def all_go_on(self) -> None:
        """Until enough turns have completed since now."""
        so_far = len(self.completed)
        await until(lambda: len(self.completed) >= so_far + PEOPLE * TURNS)

    async def check(self) -> None:
        """Every turn is as it would be had nothing happened."""
        http = self.clients[self.nodes[0]]
        for person in self.completed:
            await check_end(http, person, self.tools, self.model)


@pytest.fixture
async def fleet(
    tmp_path: Path, model: ScriptedModel, postgres: Postgres, last_release: Path
) -> AsyncIterator[Fleet]:
    model.otherwise = paced_reply_to
    with desk() as tools:
        url = postgres.create_database()
        fleet = Fleet(tmp_path, settings_for(model, url), last_release, model, tools)
        async with fleet.stack:
            yield fleet


async def test_nodes_of_the_last_release_are_replaced_one_by_one_while_people_talk(fleet: Fleet):
    first, second = [await fleet.start(VERSION) for _ in range(2)]
    agent = await converse(fleet.clients[first], agent_settings(fleet.tools))
    async with asyncio.TaskGroup() as living:
        for number in range(PEOPLE):
            living.create_task(fleet.live(agent, f"user-{number}"))
        await fleet.all_go_on()
        await fleet.start("this")  # migrates while both others serve
        await fleet.all_go_on()
        await fleet.end(first, signal.SIGTERM)
        await fleet.start("this")
        await fleet.all_go_on()
        await fleet.end(second, signal.SIGTERM)
        await fleet.all_go_on()
        fleet.is_over = True
    await fleet.check()


async def test_new_node_goes_away_again_and_the_old_ones_crash(fleet: Fleet):
    first, second = [await fleet.start(VERSION) for _ in range(2)]
    agent = await converse(fleet.clients[first], agent_settings(fleet.tools))
    new = await fleet.start("this")
    async with asyncio.TaskGroup() as living:
        for number in range(PEOPLE):
            living.create_task(fleet.live(agent, f"user-{number}"))
        await fleet.all_go_on()
        await fleet.end(new, signal.SIGTERM)  # its turns wait for one of its version
        await asyncio.sleep(3)
        new = await fleet.start("this")
        await fleet.all_go_on()
        await fleet.end(first, signal.SIGKILL)
        await fleet.end(second, signal.SIGKILL)
        await fleet.all_go_on()
        fleet.is_over = True
    await fleet.check()
