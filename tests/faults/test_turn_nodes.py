"""Two real nodes on one PostgreSQL: any of them shows and stops any turn, and one continues the other's."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import TEMPLATE
from tests.postgres import Postgres, PostgresServer
from tests.serving import Server
from tests.talking import JSON, Talk, parse, talking
from threadkeep.log import writer as log_writer
from threadkeep.runtime import mirrors
from threadkeep.storage.database import postgres as postgres_module
from threadkeep.testing import Gate, Pause, Say, ScriptedModel, Wait, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S, until

LISTENING = """SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'"""
WORDS = [step for number in range(20) for step in (Say(f"{number} "), Pause(0.02))]


def check_whole(events: list[dict[str, Any]]) -> None:
    """No gap, no repeat, one end, and every call of a tool has one result."""
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert events[0]["type"] == "turn_start"
    assert [event["type"] in {"done", "error"} for event in events] == [False] * (len(events) - 1) + [True]
    called, ended = (
        [event["tool_call_id"] for event in events if event["type"] == kind]
        for kind in ("tool_call", "tool_result")
    )
    assert called == ended


def texts(events: list[dict[str, Any]]) -> str:
    """What was said."""
    return "".join(event["text"] for event in events if event["type"] == "text")


class Client:
    """A user of one node."""

    def __init__(self, server: Server, http: httpx.AsyncClient) -> None:
        self.server = server
        self.http = http

    async def conversation(self) -> str:
        """A new conversation for which no title is asked."""
        made = await self.http.post("/api/agents", json={"name": "Advisor"})
        started = await self.http.post(f"/api/agents/{made.json()['id']}/conversations")
        await self.http.patch(f"/api/conversations/{started.json()['id']}", json={"title": "Nodes"})
        return started.json()["id"]

    async def begin(self, conversation: str) -> str:
        """Begins a turn."""
        path = f"/api/conversations/{conversation}/messages"
        response = await self.http.post(path, json={"content": "Why?"}, headers=JSON)
        assert response.status_code == 202, response.text
        return response.json()["turnId"]

    async def follow(self, turn_id: str, after: int | None = None) -> AsyncGenerator[dict[str, Any]]:
        """A turn's events as they come."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async with self.http.stream("GET", f"/api/turns/{turn_id}/events", headers=headers) as response:
            async for event in parse(response):
                yield event

    async def events(self, turn_id: str, after: int | None = None) -> list[dict[str, Any]]:
        """All of a turn's events, to its end."""
        return [event async for event in self.follow(turn_id, after)]

    async def until_text(self, turn_id: str) -> int:
        """Until something of the reply is seen here; its number."""
        async with aclosing(self.follow(turn_id)) as events:
            async for event in events:
                if event["type"] == "text":
                    return event["seq"]
        raise AssertionError("nothing was said")

    async def reply(self, conversation: str) -> dict[str, Any]:
        """The newest message of a conversation."""
        response = await self.http.get(f"/api/conversations/{conversation}/messages?limit=200")
        return response.json()["items"][-1]

    async def check_goes_on(self, conversation: str) -> None:
        """A new turn can be begun at once, and ends well."""
        assert (await self.events(await self.begin(conversation)))[-1].get("status") == "COMPLETED"


def node_settings(database_url: str, model: ScriptedModel) -> dict[str, str]:
    return {
        "database_url": database_url,
        "database_pool_size": "4",
        "gateway": "openai",
        "gateway_url": model.url,
        "gateway_api_key": "sk-scripted",
        "model": "scripted",
    }


async def start_node(stack: AsyncExitStack, folder: Path, settings: dict[str, str]) -> Client:
    """A node that runs as long as the stack is not unwound."""
    server = stack.enter_context(await asyncio.to_thread(Server, folder, **settings))
    return Client(server, await stack.enter_async_context(server.async_client()))


@asynccontextmanager
async def two_nodes(folder: Path, database_url: str, model: ScriptedModel) -> AsyncGenerator[list[Client]]:
    settings = node_settings(database_url, model)
    async with AsyncExitStack() as stack:
        yield [await start_node(stack, folder, settings) for _ in range(2)]


@pytest.fixture
async def nodes(tmp_path: Path, postgres: Postgres, model: ScriptedModel) -> AsyncIterator[list[Client]]:
    async with two_nodes(tmp_path, postgres.create_database(template=TEMPLATE), model) as nodes:
        yield nodes


async def test_any_node_follows_resumes_and_aborts(nodes: list[Client], model: ScriptedModel):
    here, there = nodes
    gate = Gate()
    model.script(WORDS, [Say("half"), Wait(gate), Say("never")])
    conversation = await here.conversation()
    turn_id = await here.begin(conversation)
    mine, theirs = await asyncio.gather(here.events(turn_id), there.events(turn_id))
    assert mine == theirs
    check_whole(mine)
    assert texts(mine) == "".join(f"{number} " for number in range(20))
    for after in range(0, len(mine), 3):
        assert await there.events(turn_id, after) == mine[after:]

    second = await here.begin(conversation)
    seen = await there.until_text(second)
    resumed = asyncio.create_task(there.events(second, seen))
    refused = await there.http.post(
        f"/api/conversations/{conversation}/messages", json={"content": "?"}, headers=JSON
    )
    assert (refused.status_code, refused.json()["error"]["details"]) == (409, {"turnId": second})
    stopped = await there.http.post(f"/api/conversations/{conversation}/abort")
    assert (stopped.json()["status"], stopped.json()["content"]) == ("GENERATION_ABORTED", "half")
    events = await here.events(second)
    check_whole(events)
    assert (events[-1]["type"], events[-1]["status"]) == ("done", "CANCELLED")
    assert await resumed == events[seen:]
    model.script([Say("anew")])
    anew = await there.http.post(f"/api/conversations/{conversation}/regenerate", headers=JSON)
    assert texts(await here.events(anew.json()["turnId"])) == "anew"
    await there.check_goes_on(conversation)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


async def test_database_that_restarts_in_mid_turn(
    tmp_path: Path, own_postgres: PostgresServer, model: ScriptedModel
):
    gate = Gate()
    # Whoever goes on with the turn gets the same answer: on a busy machine leases expire.
    model.script(*[[*WORDS, Wait(gate), *WORDS]] * 5)
    async with two_nodes(tmp_path, own_postgres.create_database(), model) as (here, there):
        conversation = await here.conversation()
        turn_id = await here.begin(conversation)
        followers = [asyncio.create_task(node.events(turn_id)) for node in (here, there)]
        await there.until_text(turn_id)
        await asyncio.to_thread(own_postgres.restart, "immediate")
        gate.open()
        shown = await asyncio.gather(*followers)
        stored = await there.events(turn_id)
        check_whole(stored)
        assert all(events == stored for events in shown)
        reply = await there.reply(conversation)
        assert reply["status"] == "COMPLETED"
        assert reply["content"] == "".join(f"{number} " for number in range(20)) * 2
        for node in (here, there):
            await node.check_goes_on(conversation)


@asynccontextmanager
async def two_nodes_here(database_url: str, model: ScriptedModel) -> AsyncGenerator[tuple[Talk, Talk]]:
    """Two nodes in this process, whose patience a test can set."""
    settings = scripted_settings(model, database_url=database_url, embedding_url="off")
    async with talking(settings) as here, talking(settings) as there:
        yield here, there


async def listeners(database_url: str) -> set[int]:
    """The connections on which nodes listen."""

    def look() -> set[int]:
        with psycopg.connect(database_url) as connection:
            return {pid for (pid,) in connection.execute(LISTENING)}

    return await asyncio.to_thread(look)


async def hang_up(database_url: str, pids: set[int]) -> None:
    """Ends connections, as a proxy or an administrator does."""

    def end() -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [list(pids)])

    await asyncio.to_thread(end)


async def check_signals(
    nodes: tuple[Talk, Talk], model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    """What one node stores, the other shows because it is told, and not because it looks."""
    here, there = nodes
    monkeypatch.setattr(mirrors, "LOOK_EVERY_S", 3600)
    model.script([Say("told "), Wait(gate), Say("at once")])
    turn_id = await here.begin(await untitled(here))
    followed: list[dict[str, Any]] = []
    async for event in there.follow(turn_id):
        followed.append(event)
        if event["type"] == "text":
            gate.open()
    check_whole(followed)
    assert texts(followed) == "told at once"


async def untitled(talk: Talk) -> str:
    conversation = await talk.conversation()
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "Nodes"})
    return conversation


async def test_node_that_was_cut_off_from_signals_hears_them_again(
    postgres: Postgres, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.create_database(template=TEMPLATE)
    async with two_nodes_here(url, model) as nodes:
        here, there = nodes
        gate = Gate()
        model.script([Say("one "), Wait(gate), Say("two")])
        turn_id = await here.begin(await untitled(here))
        following = asyncio.create_task(there.events(turn_id))
        await gate.reached()
        before = await listeners(url)
        assert len(before) == 2
        await hang_up(url, before)
        gate.open()  # nobody is told, and yet
        events = await following
        check_whole(events)
        assert texts(events) == "one two"
        await until(lambda: is_listened_to_anew(url, before))
        await check_signals(nodes, model, monkeypatch, Gate())


async def is_listened_to_anew(database_url: str, before: set[int]) -> bool:
    now = await listeners(database_url)
    return len(now) == 2 and not now & before


async def test_database_that_stays_away_longer_than_anybody_waits(
    own_postgres: PostgresServer,
    model: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(postgres_module, "WAIT_FOR_CONNECTION_S", 0.5)
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", 0.5)
    url = own_postgres.create_database()
    async with two_nodes_here(url, model) as nodes:
        here, there = nodes
        monkeypatch.setattr(postgres_module, "WAIT_FOR_CONNECTION_S", PATIENCE_S)
        gate = Gate()
        model.script([*WORDS[:6], Wait(gate), *WORDS])
        conversation = await untitled(here)
        turn_id = await here.begin(conversation)
        followers = [asyncio.create_task(node.events(turn_id)) for node in nodes]
        await gate.reached()
        await asyncio.to_thread(own_postgres.stop)
        gate.open()
        await until(lambda: f"couldn't store turn {turn_id}" in caplog.text)
        await until(lambda: caplog.text.count("reconnection attempt in pool") >= 2)
        away = await there.client.post(f"/api/conversations/{conversation}/abort")
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")
        assert not any(follower.done() for follower in followers)
        await asyncio.to_thread(own_postgres.start)
        mine, theirs = await asyncio.gather(*followers)
        check_whole(mine)
        assert mine == theirs == await there.events(turn_id)
        assert (mine[-1]["type"], mine[-1]["status"]) == ("done", "COMPLETED")
        assert sum(event["type"] == "turn_resumed" for event in mine) == 1
        for node in nodes:
            assert (await node.ask(conversation))["status"] == "COMPLETED"
        await until(lambda: is_listened_to_anew(url, set()))
        await check_signals(nodes, model, monkeypatch, Gate())
