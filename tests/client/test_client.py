"""The Python client: against a server, against an app in this process, and on connections that break."""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, structs

from tests.serving import Server, serving
from threadkeep.client import BlockingClient, Client, ClientError, MessageQueued, NotReached, Sending
from threadkeep.domain.events import Done, Text, TurnEvent
from threadkeep.domain.ids import new_uuid
from threadkeep.testing import Gate, Say, ScriptedModel, Status, Wait, closed_port, running_app, until
from threadkeep.wire.messages import MessageView, message_views
from threadkeep.wire.queue import QueuedView, SteeredView
from threadkeep.wire.turns import StartedTurnView
from threadkeep.wire.view import View


@pytest.fixture
async def inside(model: ScriptedModel) -> AsyncGenerator[Client]:
    """A client of an app in this process."""
    async with running_app(model) as app:
        yield app.client


@pytest.fixture
def server(tmp_path: Path, model: ScriptedModel) -> Generator[Server]:
    with serving(tmp_path, gateway="openai", gateway_url=model.url, model="scripted") as server:
        yield server


def said(events: list[TurnEvent]) -> str:
    return "".join(event.body.text for event in events if isinstance(event.body, Text))


async def default_conversation(client: Client) -> str:
    agent = await anext(agent async for agent in client.agents() if agent.is_default)
    return (await client.main_conversation(agent.id)).id


async def test_reply_streams_while_the_model_still_writes(inside: Client, model: ScriptedModel):
    gate = Gate()
    model.script([Say("Hel"), Wait(gate), Say("lo")])
    events = inside.send(await default_conversation(inside), "Hi")
    seen = [event async for event in events if not said_in(event) or gate.open() is None]
    assert said(seen) == "Hello"
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert isinstance(seen[-1].body, Done)


def said_in(event: TurnEvent) -> bool:
    return isinstance(event.body, Text)


async def test_messages_are_queued_edited_removed_and_steer_the_reply(inside: Client, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("One.")], [Say("Two.")], [Say("Three.")])
    agent = await inside.create_agent("Law")
    conversation = (await inside.create_conversation(agent.id, title="Lease")).id
    started = await inside.post(conversation, "1?")
    assert isinstance(started, StartedTurnView)
    await gate.reached()
    first = await inside.post(conversation, "two")
    assert isinstance(first, QueuedView)
    assert [event async for event in inside.send(conversation, "no", when_busy="queue")] == []
    steering = await inside.post(conversation, "3?", when_busy="steer")
    assert isinstance(steering, SteeredView)
    assert steering.turn_id == started.turn_id
    waiting = await inside.queued(conversation)
    assert [(it.content, it.held, it.steers) for it in waiting] == [
        ("3?", False, True), ("two", False, UNSET), ("no", False, UNSET),
    ]  # fmt: skip
    assert (await inside.edit_queued(conversation, first.message_id, "2?")).content == "2?"
    await inside.remove_queued(conversation, waiting[2].message_id)
    gate.open()
    await until_idle(inside, conversation)
    said = [message.content async for message in inside.messages(conversation)]
    assert said == ["1?", "One.", "3?", "Two.", "2?", "Three."]


async def until_idle(client: Client, conversation: str) -> None:
    async def is_idle() -> bool:
        return (await client.conversation(conversation)).active_turn_id is None

    await until(is_idle)


async def test_message_behind_held_ones_has_no_reply_yet(inside: Client, model: ScriptedModel):
    agent = await inside.create_agent("Law")
    conversation = (await inside.create_conversation(agent.id, title="Lease")).id
    for say in (inside.ask, inside.start):
        gate = Gate()
        model.script([Wait(gate)], [Say("Two.")], [Say("Three.")])
        await inside.post(conversation, "1?")
        await gate.reached()
        await inside.post(conversation, "2?")
        await inside.abort(conversation)
        with pytest.raises(MessageQueued) as queued:
            await say(conversation, "3?")
        await until_idle(inside, conversation)
        asked = [message.id async for message in inside.messages(conversation, newest_first=True)][1]
        assert queued.value.message_id == asked


async def test_whole_life_of_a_conversation(inside: Client, model: ScriptedModel):
    model.script([Say("One.")], [Say("Two.")], [Say("Three.")])
    agent = await inside.create_agent("Law", system_prompt="Be exact.", settings={"contextMessages": 4})
    agent = await inside.update_agent(agent.id, {"description": "Knows law"}, version=agent.version)
    assert (agent.description, (await inside.agent(agent.id)).description) == ("Knows law", "Knows law")
    copy = await inside.duplicate_agent(agent.id)
    assert (copy.name, copy.system_prompt, copy.settings) == ("Law copy", "Be exact.", agent.settings)
    conversation = await inside.create_conversation(agent.id, title="Lease", metadata={"case": 7})
    assert (await inside.ask(conversation.id, "First?")).content == "One."
    started = await inside.start(conversation.id, "Second?")
    assert said([event async for event in inside.follow(started.turn_id)]) == "Two."
    assert (await inside.turn(started.turn_id)).status == "COMPLETED"
    assert said([event async for event in inside.regenerate(conversation.id)]) == "Three."
    contents = [message.content async for message in inside.messages(conversation.id)]
    assert contents == ["First?", "One.", "Second?", "Three."]
    assert [it.content for it in (await inside.conversation(conversation.id)).messages] == contents
    assert [it.content for it in (await inside.context(conversation.id, limit=2)).messages] == contents[2:]
    assert (await inside.receipt(started.turn_id)).message_ids
    await inside.update_conversation(conversation.id, {"status": "archived", "pinned": True})
    assert [it.pinned async for it in inside.conversations(pinned=True)] == [True]
    assert conversation.id not in {it.id async for it in inside.conversations(pinned=False)}
    assert [it.id async for it in inside.conversations(status="archived")] == [conversation.id]
    assert [it.id async for it in inside.conversations(agent_id=agent.id)] == [conversation.id]
    assert (await inside.abort(conversation.id)).status == "IDLE"
    await inside.delete_conversation(conversation.id)
    (deleted,) = [it async for it in inside.conversations(status="deleted")]
    assert (deleted.id, deleted.status) == (conversation.id, "deleted")
    assert str(deleted.deleted_at) < str(deleted.purge_at)
    assert (await inside.restore_conversation(conversation.id)).id == conversation.id
    await inside.delete_conversation(conversation.id, purge=True)
    (used,) = (await inside.usage()).items  # outlives the conversation
    assert (used.agent_id, used.turns, used.calls) == (agent.id, 3, 3)
    await inside.delete_agent(agent.id)
    with pytest.raises(ClientError) as refused:
        await inside.agent(agent.id)
    assert (refused.value.code, refused.value.status) == ("AGENT_NOT_FOUND", 404)
    assert refused.value.request_id


async def test_branches_are_begun_chosen_and_forked(inside: Client, model: ScriptedModel):
    model.script([Say("One.")], [Say("Two.")], [Say("Three.")])
    agent = await inside.create_agent("Law")
    conversation = (await inside.create_conversation(agent.id, title="Lease")).id  # so no title is asked for
    first = await inside.ask(conversation, "First?", tip=None)
    edited = await inside.ask(conversation, "Other?", parent_id=None, tip=first.id)
    again = [event async for event in inside.regenerate(conversation, first.id, tip=edited.id)]
    assert said(again) == "Three."
    path = [it async for it in inside.messages(conversation)]
    assert [it.content for it in path] == ["First?", "Three."]
    every = [it.content async for it in inside.messages(conversation, include_overwritten=True)]
    assert every == ["First?", "One.", "Other?", "Two.", "Three."]
    with pytest.raises(ClientError) as refused:
        await inside.start(conversation, "Late?", tip=edited.id)
    assert (refused.value.code, refused.value.details) == ("PATH_CHANGED", {"tip": path[-1].id})
    await inside.choose_path(conversation, edited.id, tip=path[-1].id)
    assert [it.content async for it in inside.messages(conversation)] == ["Other?", "Two."]
    fork = await inside.fork(conversation, first.id)
    assert [it.content async for it in inside.messages(fork.id)] == ["First?", "One."]


async def test_lists_go_on_from_page_to_page(inside: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("threadkeep.client.connection.PAGE_SIZE", 2)
    agent = await inside.create_agent("Many")
    made = [(await inside.create_conversation(agent.id)).id for _ in range(5)]
    assert {it.id async for it in inside.conversations()} == set(made)


async def test_refusal_names_the_field(inside: Client):
    with pytest.raises(ClientError) as refused:
        await inside.create_agent("Law", settings={"contextMessages": -1})
    assert (refused.value.code, refused.value.param) == ("INVALID_REQUEST", "settings.contextMessages")


async def test_failed_turn_waited_for_is_an_error_with_the_partial_message(
    inside: Client, model: ScriptedModel
):
    model.script([Status(400, "no")])
    with pytest.raises(ClientError) as refused:
        await inside.ask(await default_conversation(inside), "Hi")
    assert (refused.value.code, refused.value.status) == ("AGENTX_ERROR", 502)
    assert isinstance(refused.value.details, dict)


async def test_whoever_stops_listening_does_not_stop_the_turn(inside: Client, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    conversation_id = await default_conversation(inside)
    events = inside.send(conversation_id, "Hi")
    first = await anext(events)
    await events.aclose()
    gate.open()
    rest = [event async for event in inside.follow(first.turn_id, after=first.seq)]
    assert said(rest) == "One two."
    assert [event async for event in inside.follow(first.turn_id, after=rest[-1].seq)] == []


async def test_same_key_never_starts_a_second_turn(inside: Client, model: ScriptedModel):
    model.script([Say("Once.")])
    conversation_id, key = await default_conversation(inside), new_uuid()
    turns = [(await inside.start(conversation_id, "Hi", idempotency_key=key)).turn_id for _ in range(2)]
    assert turns[0] == turns[1]


async def test_file_is_sent_piece_by_piece_and_waited_for(inside: Client, tmp_path: Path):
    large, small = tmp_path / "large.txt", tmp_path / "small.md"
    large.write_text("The lease ends in May. " * 10_000)
    small.write_text("# Deposit")
    agent = await inside.create_agent("Law")
    seen: list[Sending] = []
    sent = await inside.upload(agent.id, [large, str(small)], on_progress=seen.append)
    assert [(it.file_name, it.size) for it in sent] == [("large.txt", 230_000), ("small.md", 9)]
    of_large = [it.sent for it in seen if it.path == large]
    assert len(of_large) > 1
    assert of_large == sorted(set(of_large))
    assert {it.size for it in seen if it.path == large} == {230_000} == {of_large[-1]}
    read = [await inside.until_read(agent.id, it.id) for it in sent]
    assert [it.status for it in read] == ["ready", "ready"]
    assert {it.id async for it in inside.documents(agent.id)} == {it.id for it in sent}
    (hit, *_) = (await inside.search_documents(agent.id, "deposit")).items
    assert hit.source == "small.md"


def test_upload_that_the_server_refuses_is_an_error_with_its_code(tmp_path: Path, model: ScriptedModel):
    (tmp_path / "large.txt").write_bytes(b"x" * 1_000_000)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    limited = serving(tmp_path, max_upload_bytes="100000", gateway="openai")
    with limited as server, BlockingClient(server.url) as client:
        agent = client.create_agent("Law")
        for name, code, status in (
            ("large.txt", "PAYLOAD_TOO_LARGE", 413),
            ("picture.png", "UNSUPPORTED_DOCUMENT", 422),
        ):
            with pytest.raises(ClientError) as refused:
                client.upload(agent.id, [tmp_path / name])
            assert (refused.value.code, refused.value.status) == (code, status)
        with pytest.raises(FileNotFoundError):
            client.upload(agent.id, [tmp_path / "nowhere.txt"])
        assert list(client.documents(agent.id)) == []


async def test_token_signs_in():
    async with running_app() as app, app.as_user("alice") as alice, Client(app=app.app) as nobody:
        assert (await alice.me()).id == "alice"
        with pytest.raises(ClientError) as refused:
            await nobody.me()
    assert refused.value.code == "UNAUTHENTICATED"


async def test_nobody_there_is_told():
    with closed_port() as url:
        client = Client(url)
        assert not await client.is_there()
        with pytest.raises(NotReached, match="No response from Threadkeep"):
            await client.me()
        await client.close()
    for address in ("http://host:port", "127.0.0.1:8710", "localhost:8710", "ws://127.0.0.1:8710"):
        with pytest.raises(NotReached, match="is not a valid address"):
            Client(address)


async def test_server_of_another_kind_is_told(model: ScriptedModel):
    asked = re.escape(f"GET {model.url}/api/me returned status")
    async with Client(model.url) as client:
        with pytest.raises(NotReached, match=f"isn't Threadkeep: {asked}.*include the path in the address"):
            await client.me()


def test_blocking_face_does_the_same_over_the_network(server: Server, model: ScriptedModel):
    model.script([Say("Hel"), Say("lo")], [Say("Again")])
    with BlockingClient(server.url) as client:
        assert client.is_there()
        agent = next(agent for agent in client.agents() if agent.is_default)
        conversation = client.main_conversation(agent.id)
        assert said(list(client.send(conversation.id, "Hi"))) == "Hello"
        for _ in client.send(conversation.id, "Again?"):
            break  # leaving a stream early hangs up and nothing else
        client.abort(conversation.id)
        assert len(list(client.messages(conversation.id))) == 4
        with pytest.raises(ClientError):
            client.conversation(new_uuid())


def test_blocking_face_has_every_call():
    async_calls, blocking_calls = (
        {name for name, _ in inspect.getmembers(face, inspect.isfunction) if not name.startswith("_")}
        for face in (Client, BlockingClient)
    )
    assert blocking_calls == async_calls


@contextmanager
def no_pause(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    with monkeypatch.context() as patched:
        patched.setattr("threadkeep.client.connection.PAUSE_S", 0.0)
        yield


async def test_broken_connection_is_taken_up_where_it_broke(monkeypatch: pytest.MonkeyPatch):
    """Every response breaks off after one event; the events still come once each, in order."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.append(head.split(" http/")[0])
        last = re.search(r"last-event-id: (\d+)", head)
        seq = int(last[1]) + 1 if last else 1
        kind, fields = "text", '"text": "\u2028"'
        if seq == 2:
            kind = "from_the_future"
        if seq == 4:
            kind, fields = "error", '"code": "X", "message": "broken"'
        known = f'{{"type": "{kind}", "turn_id": "t", "seq": {seq}, "at": 0, {fields}}}'.encode()
        after = known.replace(b'"seq": 2', b'"seq": 3').replace(b"from_the_future", b"text")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nlocation: /api/turns/t\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        event = b"data: %b\n\n" % known + (b"data: %b\n\n" % after if seq == 2 else b"")
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()
        writer.close()

    fake = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = Client(f"http://127.0.0.1:{fake.sockets[0].getsockname()[1]}")
    with no_pause(monkeypatch):
        events = [event async for event in client.send("c", "Why?")]
    assert [event.seq for event in events] == [1, 3, 4]  # what a newer server adds is passed over
    assert asked == ["post /api/conversations/c/messages", *["get /api/turns/t/events"] * 2]
    fake.close()
    await fake.wait_closed()
    with no_pause(monkeypatch), pytest.raises(NotReached, match="No response from Threadkeep"):
        async for _ in client.send("c", "Why?"):
            pass
    await client.close()


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_first_request_survives_a_node_that_restarts_behind_a_proxy(
    status: int, monkeypatch: pytest.MonkeyPatch
):
    """A proxy says so where a node broke off before it responded; the same key starts no second turn."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.extend(re.findall(r"idempotency-key: (\S+)", head))
        is_first = len(asked) == 1
        body = b"Bad Gateway" if is_first else b'{"turnId": "t"}'
        response = f"HTTP/1.1 {status if is_first else 202} -\r\ncontent-length: {len(body)}\r\n"
        writer.write(response.encode() + b"connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    fake = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with Client(f"http://127.0.0.1:{fake.sockets[0].getsockname()[1]}") as client:
        with no_pause(monkeypatch):
            started = await client.start("c", "Why?")
    fake.close()
    assert started.turn_id == "t"
    assert len(asked) == 2
    assert asked[0] == asked[1]


BEGINNINGS: dict[str, Callable[[Client], AsyncGenerator[TurnEvent]]] = {
    "send": lambda client: client.send("c", "Why?"),
    "regenerate": lambda client: client.regenerate("c"),
    "send_held": lambda client: client.send_held("c", "m"),
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
async def test_every_request_that_begins_a_turn_is_repeated_with_its_key(
    begin: Callable[[Client], AsyncGenerator[TurnEvent]], monkeypatch: pytest.MonkeyPatch
):
    """Nobody knows whether the turn has begun; with its key, a second one does not."""
    asked: list[str] = []

    async def hang_up_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.extend(re.findall(r"idempotency-key: (\S+)", head))
        if len(asked) > 1:
            writer.write(b"HTTP/1.1 202 -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    fake = await asyncio.start_server(hang_up_once, "127.0.0.1", 0)
    async with Client(f"http://127.0.0.1:{fake.sockets[0].getsockname()[1]}") as client:
        with no_pause(monkeypatch):
            assert [event async for event in begin(client)] == []
    fake.close()
    await fake.wait_closed()
    assert len(asked) == 2
    assert asked[0] == asked[1]


class HologramPartView(View, frozen=True, kw_only=True, tag="hologram"):
    """A part that a later version will know."""

    iteration: int = 1


async def test_message_of_a_newer_server_is_read_without_the_parts_that_are_unknown(
    inside: Client, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    def newer_views(*arguments: Any) -> list[MessageView]:
        views = message_views(*arguments)
        return [structs.replace(it, parts=[HologramPartView(), *it.parts]) for it in views]

    model.script([Say("Hello")])
    conversation = await default_conversation(inside)
    _ = [event async for event in inside.send(conversation, "Hi")]
    monkeypatch.setattr("threadkeep.http.api.conversations.message_views", newer_views)
    contents = [it.content async for it in inside.messages(conversation)]
    assert contents == ["Hi", "Hello"]


async def test_key_is_made_used_like_a_token_and_revoked(model: ScriptedModel):
    async with running_app(model) as app:
        client = app.client
        agent = await client.create_agent("Law")
        expires_at = datetime.now(UTC) + timedelta(days=1)
        made = await client.create_key(
            "CI", ["chat"], agents=[agent.id], budget_month="2.50", expires_at=expires_at
        )
        assert (made.budget_month, made.agents) == ("2.50", [agent.id])
        async with Client("http://localhost", token=made.key, app=app.app) as program:
            assert [it.id async for it in program.agents()] == [agent.id]
            with pytest.raises(ClientError) as refused:
                await program.create_agent("Other")
            assert refused.value.code == "FORBIDDEN"
            assert [it.id async for it in client.keys()] == [made.id]  # noqa: SIM118 - no mapping
            await client.revoke_key(made.id)
            with pytest.raises(ClientError) as refused:
                await program.me()
            assert refused.value.code == "UNAUTHENTICATED"
