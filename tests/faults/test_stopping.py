"""SIGTERM while turns run: they get their time to end, nothing new begins, and no text is lost."""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving import Server
from tests.talking import JSON
from threadkeep.client import Client, ClientError
from threadkeep.domain.events import Done, Text, TurnEvent
from threadkeep.testing import Gate, Say, ScriptedModel, ToolServer, UseTool, Wait


def serve(folder: Path, model: ScriptedModel, grace_s: float, **settings: str) -> Server:
    return Server(
        folder,
        gateway="openai",
        gateway_url=model.url,
        model="scripted",
        shutdown_grace_s=str(grace_s),
        **settings,
    )


async def new_conversation(client: Client, servers: Mapping[str, Any] | None = None) -> str:
    agent = await client.create_agent("Advisor", settings={"mcpServers": servers or {}})
    return (await client.create_conversation(agent.id, title="Stopping")).id


async def until_text(client: Client, conversation_id: str, seen: list[TurnEvent]) -> "asyncio.Task[None]":
    """Begins a turn, waits for its first words, and goes on collecting its events in the background."""
    spoke = asyncio.Event()

    async def collect() -> None:
        async for event in client.send(conversation_id, "Why?"):
            seen.append(event)
            if isinstance(event.body, Text):
                spoke.set()

    task = asyncio.create_task(collect())
    await spoke.wait()
    return task


async def until_refused(server: Server, conversation_id: str) -> None:
    """Until the signal has arrived, so that nothing new is begun. Our own client would try again."""
    path, response = f"/api/conversations/{conversation_id}/messages?wait=true", None
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as client:
        while response is None or response.status_code == 200:
            response = await client.post(path, json={"content": "And?"}, headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "SHUTTING_DOWN")


def said(events: list[TurnEvent]) -> str:
    return "".join(event.body.text for event in events if isinstance(event.body, Text))


async def ended(server: Server) -> int:
    return await asyncio.to_thread(server.wait)


async def test_running_turn_ends_by_itself_and_nothing_new_begins(tmp_path: Path, model: ScriptedModel):
    gate, seen = Gate(), list[TurnEvent]()
    model.script([Say("One "), Wait(gate), Say("two.")])
    server = serve(tmp_path, model, grace_s=60)
    async with Client(server.url) as client:
        first, second = await new_conversation(client), await new_conversation(client)
        turn = await until_text(client, first, seen)
        server.process.send_signal(signal.SIGTERM)
        await until_refused(server, second)
        async with httpx.AsyncClient(
            base_url=server.url, trust_env=False
        ) as probe:  # a proxy sends nobody here any more, and nobody kills it
            ready, lives = await probe.get("/readyz"), await probe.get("/healthz")
        gate.open()
        await turn
    assert (ready.status_code, ready.json()["error"]["code"], lives.status_code) == (
        503,
        "SHUTTING_DOWN",
        200,
    )
    assert (said(seen), type(seen[-1].body)) == ("One two.", Done)
    assert await ended(server) == 0


async def test_turn_that_takes_too_long_is_handed_off_with_its_text_and_goes_on_at_the_next_start(
    tmp_path: Path, model: ScriptedModel
):
    gate, seen = Gate(), list[TurnEvent]()
    model.script([Say("One "), Wait(gate)], [Say("One "), Say("two.")])
    server = serve(tmp_path, model, grace_s=0.1)
    async with Client(server.url) as client:
        conversation_id = await new_conversation(client)
        turn = await until_text(client, conversation_id, seen)
        server.process.send_signal(signal.SIGTERM)
        assert await ended(server) == 0
        turn.cancel()  # its stream has broken, without an end; it would try again for a while
    gate.open()
    assert isinstance(seen[-1].body, Text)
    again = serve(tmp_path, model, grace_s=0)
    async with Client(again.url) as client:
        events = [event async for event in client.follow(seen[0].turn_id)]
        reply = [message async for message in client.messages(conversation_id)][-1]
    assert events[: len(seen)] == seen
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert (reply.content, reply.status) == ("One two.", "COMPLETED")
    assert isinstance(events[-1].body, Done)
    assert again.stop() == 0


async def test_who_waits_for_a_turn_that_is_handed_off_is_told_at_once_to_ask_again(
    tmp_path: Path, model: ScriptedModel
):
    in_tool, in_model = Gate(), Gate()

    async def note() -> str:
        """Writes something down."""
        await in_tool.pass_through()
        return "noted"

    model.script([UseTool("desk__note")], [Say("One "), Wait(in_model), Say("two.")])
    with (
        ToolServer(note, name="desk") as tools,
        serve(tmp_path, model, 60, mcp_allow_private="true") as server,
    ):
        async with Client(server.url) as client, server.async_client() as http:
            conversations = [await new_conversation(client, {"desk": tools.settings}) for _ in range(2)]
            asked = asyncio.create_task(ask(http, conversations[0]))
            await in_tool.reached()
            turn = await until_text(client, conversations[1], [])
            server.process.send_signal(signal.SIGTERM)
            await until_refused(server, await new_conversation(client))
            in_tool.open()
            check_handed_off(await asked)
            # The other turn keeps the process; who asks again meanwhile is not kept beyond its end.
            sent = asyncio.Event()
            asked_again = asyncio.create_task(ask(http, conversations[0], sent))
            await sent.wait()
            in_model.open()
            check_handed_off(await asked_again)
            await turn
        assert await ended(server) == 0


async def ask(
    http: httpx.AsyncClient, conversation_id: str, sent: asyncio.Event | None = None
) -> httpx.Response:
    """Waits for the whole reply, with a key."""

    async def trace(name: str, _: object) -> None:
        if sent is not None and name == "http11.send_request_body.complete":
            sent.set()

    path = f"/api/conversations/{conversation_id}/messages?wait=true"
    headers = {**JSON, "Idempotency-Key": "once"}
    return await http.post(path, json={"content": "Why?"}, headers=headers, extensions={"trace": trace})


def check_handed_off(response: httpx.Response) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"], response.headers["retry-after"]) == (
        503,
        "SHUTTING_DOWN",
        "1",
    )
    assert error["details"]["turnId"]


async def test_second_signal_ends_it_at_once(tmp_path: Path, model: ScriptedModel):
    gate, seen = Gate(), list[TurnEvent]()
    model.script([Say("One "), Wait(gate)])
    server = serve(tmp_path, model, grace_s=3600)
    async with Client(server.url) as client:
        first, second = await new_conversation(client), await new_conversation(client)
        turn = await until_text(client, first, seen)
        server.process.send_signal(signal.SIGTERM)
        await until_refused(server, second)  # two of one kind at the same moment are one
        server.process.send_signal(signal.SIGTERM)
        assert await ended(server) == 0
        turn.cancel()
    gate.open()


async def test_user_with_too_many_turns_is_told_when_to_try_again(tmp_path: Path, model: ScriptedModel):
    model.script([Say("One.")])
    server = Server(tmp_path, gateway="openai", gateway_url=model.url, user_turns_per_minute="1")
    async with Client(server.url) as client:
        conversation_id = await new_conversation(client)
        await client.ask(conversation_id, "First?")
        with pytest.raises(ClientError) as refused:
            await client.ask(conversation_id, "Second?")
        assert (refused.value.code, refused.value.status) == ("RATE_LIMITED", 429)
        assert len([message async for message in client.messages(conversation_id)]) == 2
    assert server.stop() == 0
