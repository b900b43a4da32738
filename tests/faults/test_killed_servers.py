"""Real servers that are killed, stopped and cut off from their database in the middle of a turn.

The seed is printed; THREADKEEP_SEED=… replays it.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import TEMPLATE
from tests.faults.scene import (
    Away,
    Person,
    agent_settings,
    check_end,
    converse,
    desk,
    kinds,
    paced_reply_to,
)
from tests.postgres import Postgres, PostgresServer
from tests.serving import Server
from threadkeep.testing import ScriptedModel, ToolServer
from threadkeep.testing.waiting import until

SEED = int(os.environ.get("THREADKEEP_SEED", "20261116"))
EVENTS = 28  # of a turn that nothing happens to


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with desk(note_s=0.3) as server:
        yield server


@pytest.fixture(autouse=True)
def paced(model: ScriptedModel) -> None:
    model.otherwise = paced_reply_to


def settings_for(model: ScriptedModel, database_url: str | None = None) -> dict[str, str]:
    """As a user sets them."""
    on_postgres = {
        "database_url": database_url or "",
        "database_pool_size": "4",
        "secret_key": "a-key-for-tests-that-is-long-enough",
    }
    return {
        "gateway": "openai",
        "gateway_url": model.url,
        "gateway_api_key": "sk-scripted",
        "model": "scripted",
        "mcp_allow_private": "true",
        "mcp_connect_budget_s": "60",  # a busy machine is no reason to fail
        "embedding_url": "off",
        **(on_postgres if database_url else {}),
    }


async def talk_until(
    person: Person, http: httpx.AsyncClient, seen: int, delay_s: float
) -> "asyncio.Task[Any]":
    """Somebody talks, and has seen so many events."""
    talking = asyncio.create_task(person.talk(http))
    await until(lambda: len(person.seen) >= seen or talking.done())
    await asyncio.sleep(delay_s)
    return talking


async def forget(talking: "asyncio.Task[Any]") -> None:
    """What a server says that is killed meanwhile is not to be heard."""
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)


@pytest.mark.requirement("004-R2.3", "004-NFR-reliability-1")
async def test_server_is_killed_ten_times_in_a_turn(tmp_path: Path, model: ScriptedModel, server: ToolServer):
    chance = random.Random(SEED)
    moments = sorted(chance.sample(range(1, EVENTS + 1), 10))
    print(f"THREADKEEP_SEED={SEED}: killed after the events {moments}")
    person, agent = None, ""
    for moment in (*moments, None):
        with await asyncio.to_thread(Server, tmp_path, **settings_for(model)) as node:
            async with node.async_client() as http:
                if person is not None:
                    await person.talk(http)
                    await check_end(http, person, server, model)
                if moment is None:
                    break
                agent = agent or await converse(http, agent_settings(server))
                person = await Person.meet(http, agent, f"killed-{moment}", brings_tool=True)
                talking = await talk_until(person, http, moment, chance.uniform(0, 0.02))
                node.kill()
                await forget(talking)


@asynccontextmanager
async def two_servers(
    folder: Path, settings: dict[str, str]
) -> AsyncGenerator[list[tuple[Server, httpx.AsyncClient]]]:
    async with AsyncExitStack() as stack:
        yield [await start(stack, folder, settings) for _ in range(2)]


async def start(
    stack: AsyncExitStack, folder: Path, settings: dict[str, str]
) -> tuple[Server, httpx.AsyncClient]:
    node = stack.enter_context(await asyncio.to_thread(Server, folder, **settings))
    return node, await stack.enter_async_context(node.async_client())


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.create_database(template=TEMPLATE)


@pytest.fixture
async def nodes(
    tmp_path: Path, model: ScriptedModel, url: str
) -> AsyncIterator[list[tuple[Server, httpx.AsyncClient]]]:
    async with two_servers(tmp_path, settings_for(model, url)) as nodes:
        yield nodes


@pytest.mark.requirement("004-R2.3", "004-NFR-reliability-1")
async def test_one_of_two_servers_is_killed_with_several_turns(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, nodes: list[tuple[Server, httpx.AsyncClient]]
):
    chance = random.Random(SEED)
    moments = sorted(chance.sample(range(1, EVENTS - 4), 4))
    print(f"THREADKEEP_SEED={SEED}: killed when one of four turns had {moments[1]} events")
    (node, here), (_, there) = nodes
    agent = await converse(here, agent_settings(server))
    people = [await Person.meet(here, agent, f"killed-{moment}", brings_tool=True) for moment in moments]
    talking = [asyncio.create_task(person.talk(here)) for person in people]
    watching = [asyncio.create_task(person.watch(there)) for person in people]
    # Each is as far as its moment says, or further: they run together.
    await until(
        lambda: all(len(it.seen) >= min(moments) for it in people) and len(people[-1].seen) >= moments[1]
    )
    node.kill()
    for task in talking:
        await forget(task)
    for person, watched in zip(people, watching, strict=True):
        await person.talk(there)
        await check_end(there, person, server, model)
        assert await watched == person.seen


@pytest.mark.parametrize("moment", ["tool_result"], ids=["in_tool"])
async def test_owner_is_stopped_for_longer_than_its_lease_and_goes_on(
    model: ScriptedModel, server: ToolServer, nodes: list[tuple[Server, httpx.AsyncClient]], moment: str
):
    (node, here), (_, there) = nodes
    agent = await converse(here, agent_settings(server))
    person = await Person.meet(here, agent, moment)
    await person.begin(here)
    talking = asyncio.create_task(person.talk(there))
    await until(
        lambda: kinds(person.seen)[moment] > 0
    )  # with a tool that reads, while the one that writes runs
    node.process.send_signal(signal.SIGSTOP)
    await talking
    assert kinds(person.seen)["turn_resumed"] == 1
    node.process.send_signal(signal.SIGCONT)
    again = await person.watch(here)
    assert again == person.seen
    await check_end(here, person, server, model)
    await until(lambda: "another node took over turn" in node.output)
    assert again == await person.watch(here)
    after = await Person.meet(here, agent, f"after-{moment}")
    await after.talk(here)
    await check_end(there, after, server, model)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


@pytest.mark.parametrize("moment", ["tool_call"])
async def test_database_restarts_in_the_middle(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, own_postgres: PostgresServer, moment: str
):
    settings = settings_for(model, own_postgres.create_database())
    async with two_servers(tmp_path, settings) as ((_, here), (_, there)):
        agent = await converse(here, agent_settings(server))
        person = await Person.meet(here, agent, moment, is_decided_elsewhere=True)
        talking = asyncio.create_task(person.talk(here))
        await until(lambda: kinds(person.seen)[moment] > 0)
        await asyncio.to_thread(own_postgres.restart, "immediate")
        await until(lambda: person.request_id is not None)
        await until(lambda: has_decided(person, there))
        await talking
        await check_end(there, person, server, model)
        assert await person.watch(there) == person.seen


async def has_decided(person: Person, http: httpx.AsyncClient) -> bool:
    """Decides, as soon as the database is there again."""
    person.is_decided_elsewhere = False
    try:
        await person.decide(http)
    except (httpx.HTTPError, Away):
        return False
    return True
