"""Two real nodes on one PostgreSQL: any of them shows and stops any turn, and one ends the other's."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import TEMPLATE
from tests.http.process import Server
from tests.postgres import Postgres, PostgresServer
from tests.scripted_model import Gate, Pause, Say, ScriptedModel, Wait
from tests.talking import JSON, parse

WORDS = [step for number in range(20) for step in (Say(f"{number} "), Pause(0.02))]


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
        answer = await self.http.post(path, json={"content": "Why?"}, headers=JSON)
        assert answer.status_code == 202, answer.text
        return answer.json()["turnId"]

    async def follow(self, turn_id: str, after: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """A turn's events as they come."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async with self.http.stream("GET", f"/api/turns/{turn_id}/events", headers=headers) as answer:
            async for event in parse(answer):
                yield event

    async def events(self, turn_id: str, after: int | None = None) -> list[dict[str, Any]]:
        """All of a turn's events, to its end."""
        return [event async for event in self.follow(turn_id, after)]

    async def until_text(self, turn_id: str) -> int:
        """Until something of the reply is seen here; its number."""
        async for event in self.follow(turn_id):
            if event["type"] == "text":
                return event["seq"]
        raise AssertionError("nothing was said")

    async def reply(self, conversation: str) -> dict[str, Any]:
        """The newest message of a conversation."""
        answer = await self.http.get(f"/api/conversations/{conversation}/messages?limit=200")
        return answer.json()["items"][-1]

    async def check_goes_on(self, conversation: str) -> None:
        """A new turn can be begun at once, and ends well."""
        assert (await self.events(await self.begin(conversation)))[-1].get("status") == "COMPLETED"


@asynccontextmanager
async def two_nodes(folder: Path, database_url: str, model: ScriptedModel) -> AsyncGenerator[list[Client]]:
    settings = {
        "database_url": database_url,
        "database_pool_size": "4",
        "gateway": "openai",
        "gateway_url": model.url,
        "gateway_api_key": "sk-scripted",
        "model": "scripted",
    }
    async with AsyncExitStack() as stack:
        servers = [stack.enter_context(Server(folder, **settings)) for _ in range(2)]
        yield [Client(server, await stack.enter_async_context(server.async_client())) for server in servers]


@pytest.fixture
async def nodes(tmp_path: Path, postgres: Postgres, model: ScriptedModel) -> AsyncIterator[list[Client]]:
    async with two_nodes(tmp_path, postgres.create_database(template=TEMPLATE), model) as nodes:
        yield nodes


def check_whole(events: list[dict[str, Any]]) -> None:
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert [event["type"] in {"done", "error"} for event in events] == [False] * (len(events) - 1) + [True]


def texts(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "text")


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
    await there.check_goes_on(conversation)


@pytest.mark.requirement("004-R2.3")
async def test_killed_nodes_turn_is_ended_by_the_other(nodes: list[Client], model: ScriptedModel):
    here, there = nodes
    model.script([*WORDS, Wait(Gate())], [*WORDS, Wait(Gate())])
    conversations = [await here.conversation() for _ in range(2)]
    turns = [await here.begin(conversation) for conversation in conversations]
    followers = [asyncio.create_task(there.events(turn_id)) for turn_id in turns]
    seen_here = [asyncio.create_task(collect(here, turn_id)) for turn_id in turns]
    for turn_id in turns:
        await there.until_text(turn_id)
    here.server.kill()
    ended = await asyncio.gather(*followers)
    for conversation, turn_id, events, mine in zip(
        conversations, turns, ended, await asyncio.gather(*seen_here), strict=True
    ):
        check_whole(events)
        assert events[: len(mine)] == mine
        assert (events[-1]["type"], events[-1]["code"]) == ("error", "INTERRUPTED")
        assert await there.events(turn_id) == events
        reply = await there.reply(conversation)
        assert (reply["status"], reply["content"]) == ("FAILED", texts(events))
        assert "".join(f"{number} " for number in range(20)).startswith(texts(events))
        await there.check_goes_on(conversation)


async def collect(client: Client, turn_id: str) -> list[dict[str, Any]]:
    """All that is seen before the server is gone."""
    seen: list[dict[str, Any]] = []
    try:
        async for event in client.follow(turn_id):
            seen.append(event)  # noqa: PERF401  (kept when it breaks off)
    except httpx.HTTPError:
        pass
    return seen


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


async def test_database_that_restarts_in_mid_turn(
    tmp_path: Path, own_postgres: PostgresServer, model: ScriptedModel
):
    gate = Gate()
    model.script([*WORDS, Wait(gate), *WORDS])
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
        assert reply["content"] == texts(stored)
        assert reply["status"] in {"COMPLETED", "FAILED"}
        whole = "".join(f"{number} " for number in range(20)) * 2
        assert whole.startswith(texts(stored))
        for node in (here, there):
            await node.check_goes_on(conversation)
