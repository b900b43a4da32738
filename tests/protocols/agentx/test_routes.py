"""`/ws` with a real web socket client: sessions followed and resumed, requests, and those who misbehave."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.conftest import ONLY_SQLITE, SECRET, TEMPLATE
from tests.postgres import Postgres
from tests.serving import Server
from tests.talking import Talk, talking
from threadkeep import Settings, User, UserRole, create_app
from threadkeep.domain.ids import UserId
from threadkeep.http.server import server
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.protocols.agentx import socket as ws
from threadkeep.protocols.agentx import subscriptions
from threadkeep.storage.database.bus import PostgresBus
from threadkeep.testing import Gate, Reply, Say, ScriptedModel, Status, Usage, Wait, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S, until
from threadkeep.wire.inside import SMALL_MESSAGE_BYTES

Sent = tuple[str, dict[str, Any]]

WHOLE_TURN = [
    *("conversation_start", "message_start", "text_delta", "conversation_responding", "text_delta"),
    *("message_delta", "message_stop", "message_complete", "assistant_message", "conversation_end"),
]
ONE_PIECE = [*WHOLE_TURN[:4], *WHOLE_TURN[5:]]
HANDSHAKE = b"\r\n".join(
    (
        b"GET /ws HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        b"\r\n",
    )
)
PING, CLOSE = 0x89, 0x88  # whole frames of these kinds
TWO_PIECES: Reply = [Say("Be"), Say("cause."), Usage(7, 3)]

pytestmark = pytest.mark.usefixtures("piece_by_piece")


class Tab:
    """A client of `/ws`; wrapped events and raw responses are kept apart."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[Sent] = []
        self.responses: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        await self.socket.send(msgspec.json.encode(message).decode())

    async def subscribe(self, session_id: str, after: str | None = None) -> Self:
        await self.send(type="subscribe", sessionId=session_id, **({"afterCursor": after} if after else {}))
        return self

    async def receive(self) -> dict[str, Any]:
        """The next envelope; acknowledged where it is an event."""
        async with asyncio.timeout(PATIENCE_S):
            message = msgspec.json.decode(await self.socket.recv())
        if "__msgId" not in message:
            self.responses.append(message)
            return message
        assert set(message) == {"__msgId", "__payload"}
        envelope = msgspec.json.decode(message["__payload"])
        self.events.append((message["__msgId"], envelope))
        await self.send(__ack=message["__msgId"])
        return envelope

    async def until(self, kind: str, times: int = 1) -> list[Sent]:
        """Reads until an envelope of this kind has come so many times; gives all events so far."""
        for _ in range(times):
            while (await self.receive())["type"] != kind:
                pass
        return self.events

    async def settle(self) -> None:
        """Until all that was sent before has been handled."""
        await self.send(type="anything")
        while (await self.receive())["data"].get("message") != "Unknown message type.":
            pass

    async def error(self) -> tuple[str, str]:
        """The next envelope, which is an error: its code and the session that it is about."""
        envelope = await self.receive()
        assert (envelope["type"], envelope["category"]) == ("error", "response"), envelope
        assert envelope["data"]["message"]
        return envelope["data"]["errorCode"], envelope["context"].get("sessionId", "")

    async def request(self, name: str, **data: Any) -> dict[str, Any]:
        """The data of the response to a request."""
        await self.send(type=f"{name}_request", timestamp=1, data={"requestId": "r-1", **data})
        while (response := await self.receive())["type"] != f"{name}_response":
            pass
        assert (response["source"], response["category"], response["intent"]) == (
            "command",
            "response",
            "result",
        )
        assert response["data"]["requestId"] == "r-1"
        return response["data"]

    async def closed(self) -> int:
        """Reads what is left, then the code with which the socket was closed."""
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await self.receive()
        return closed.value.rcvd.code if closed.value.rcvd else 1006


@asynccontextmanager
async def tab(talk: Talk, **options: Any) -> AsyncGenerator[Tab]:
    """A client on its own socket."""
    async with connect(f"ws{talk.url.removeprefix('http')}/ws", max_size=None, **options) as socket:
        yield Tab(socket)


async def conversation(talk: Talk, **headers: str) -> tuple[str, str]:
    """A new conversation, which has a title already, and its session id."""
    agent = (await talk.client.post("/api/agents", json={"name": "Advisor"}, headers=headers)).json()
    path = f"/api/agents/{agent['id']}/conversations"
    made = (await talk.client.post(path, json={"title": "Talk"}, headers=headers)).json()
    return made["id"], made["sessionId"]


def kinds(events: list[Sent]) -> list[str]:
    return [envelope["type"] for _, envelope in events]


@pytest.mark.requirement("CONV-014-S1", "002-API-7", "CONV-006-S1")
async def test_subscriber_is_told_the_whole_turn_in_order(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES)
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        turn_id = await talk.begin(conversation_id)
        events = await client.until("conversation_end")
    assert kinds(events) == WHOLE_TURN
    asked, reply = await talk.messages(conversation_id)
    data = [envelope["data"] for _, envelope in events]
    assert data[:2] == [{"messageId": reply["id"]}, {"messageId": reply["id"], "model": "default/scripted"}]
    assert data[2:5] == [{"text": "Be"}, {}, {"text": "cause."}]
    assert data[5] == {"usage": {"inputTokens": 7, "outputTokens": 3}}
    assert data[6] == {"stopReason": "end_turn"}
    assert data[7] == {"messageId": reply["id"], "content": "Because.", "status": "COMPLETED"}
    assert data[8]["content"] == [{"type": "text", "text": "Because."}]
    assert data[9] == {"reason": "completed"}
    for cursor, envelope in events:
        assert cursor.startswith(f"{turn_id}:")
        assert envelope["context"]["imageId"] == conversation_id
        assert envelope["context"]["sessionId"] == session_id
        assert envelope["context"]["turnId"] == turn_id
        assert (envelope["source"], envelope["intent"]) == ("agent", "notification")
    assert len({cursor for cursor, _ in events}) == len(events)
    assert asked["content"] == "Why?"


async def test_turns_follow_one_another_however_they_began_and_ended(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("one")], [Say("two")], [Status(400, "no")], [Say("ha"), Wait(gate)])
    conversation_id, session_id = await conversation(talk)
    path = f"/api/conversations/{conversation_id}"
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        await talk.ask(conversation_id)
        await talk.client.post(f"{path}/regenerate?wait=true", headers={"Accept": "application/json"})
        await talk.ask(conversation_id)
        await talk.begin(conversation_id)
        await gate.reached()
        await client.until("text_delta", 3)
        await talk.client.post(f"{path}/abort")
        events = await client.until("conversation_end")
    ends = [envelope["data"]["reason"] for _, envelope in events if envelope["type"] == "conversation_end"]
    assert ends == ["completed", "completed", "error", "interrupted"]
    said = [envelope["data"]["content"] for _, envelope in events if envelope["type"] == "message_complete"]
    assert said == ["one", "two", "", "ha"]
    (failed,) = [envelope["data"] for _, envelope in events if envelope["type"] == "error"]
    assert failed["errorCode"] == "AGENTX_ERROR"


@ONLY_SQLITE
async def test_two_tabs_stay_in_step(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES, TWO_PIECES)
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as first, tab(talk) as second:
        for client in (first, second):
            await (await client.subscribe(session_id)).settle()
        sent = await first.request("message_send", imageId=conversation_id, content="from a tab")
        await asyncio.gather(first.until("conversation_end"), second.until("conversation_end"))
        await talk.ask(conversation_id)
        await asyncio.gather(first.until("conversation_end"), second.until("conversation_end"))
    assert first.events == second.events
    assert kinds(first.events) == WHOLE_TURN * 2
    assert first.events[0][1]["context"]["turnId"] == sent["turnId"]


async def test_follower_is_told_that_another_branch_was_chosen(talk: Talk, model: ScriptedModel):
    model.script([Say("one")], [Say("two")])
    conversation_id, session_id = await conversation(talk)
    first = await talk.ask(conversation_id)
    path = f"/api/conversations/{conversation_id}/messages?wait=true"
    body = {"content": "else", "parentId": None}
    await talk.client.post(path, json=body, headers={"Accept": "application/json"})
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        chosen = {"messageId": first["id"]}
        await talk.client.post(f"/api/conversations/{conversation_id}/path", json=chosen)
        moved = await client.receive()
    assert (moved["type"], moved["category"], moved["data"]) == ("path_changed", "state", chosen)
    assert moved["context"] == {"sessionId": session_id}
    assert client.events == []  # it has no cursor: it belongs to no turn


# Resuming


async def test_any_cursor_resumes_with_exactly_the_rest(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES, [Say("And on.")])
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        await talk.ask(conversation_id)
        await talk.ask(conversation_id)
        whole = await client.until("conversation_end", 2)
    for number, (cursor, _) in enumerate(whole, 1):
        async with tab(talk) as client:
            await client.subscribe(session_id, cursor)
            while len(client.events) < len(whole) - number:
                await client.receive()
            await client.settle()
            assert client.events == whole[number:]


async def test_any_cursor_resumes_in_the_middle_of_a_turn(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("Be"), Say("cause"), Wait(gate), Say(".")], [Say("Next.")])
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await talk.begin(conversation_id)
        await gate.reached()
        seen = list(await (await client.subscribe(session_id)).until("text_delta", 2))
        assert kinds(seen) == WHOLE_TURN[:5]  # from the turn's first event
        resumed = [await connect(f"ws{talk.url.removeprefix('http')}/ws") for _ in seen]
        later = [await Tab(it).subscribe(session_id, seen[n][0]) for n, it in enumerate(resumed)]
        for number, it in enumerate(later, 1):
            while len(it.events) < len(seen) - number:
                await it.receive()
        gate.open()
        await client.until("conversation_end")
        await talk.ask(conversation_id)
        whole = await client.until("conversation_end")
        for number, it in enumerate(later, 1):
            assert await it.until("conversation_end", 2) == whole[number:]
            await it.socket.close()


@ONLY_SQLITE
async def test_without_a_cursor_only_what_comes_is_told(talk: Talk, model: ScriptedModel):
    conversation_id, session_id = await conversation(talk)
    await talk.ask(conversation_id)
    model.script([Say("later")])
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        assert client.events == []
        await talk.ask(conversation_id)
        events = await client.until("conversation_end")
    assert [it["data"]["text"] for _, it in events if it["type"] == "text_delta"] == ["later"]


@ONLY_SQLITE
@pytest.mark.parametrize("cursor", ["nonsense", "::", "1", "{turn}", "{turn}:0:0", "{other}:1:0"])
async def test_strange_cursor_is_refused_and_the_socket_stays(talk: Talk, model: ScriptedModel, cursor: str):
    conversation_id, session_id = await conversation(talk)
    turn_id = await talk.begin(conversation_id)
    other = await talk.begin((await conversation(talk))[0])
    await asyncio.gather(talk.events(turn_id), talk.events(other))
    async with tab(talk) as client:
        await client.subscribe(session_id, cursor.format(turn=turn_id, other=other))
        assert await client.error() == ("INVALID_REQUEST", session_id)
        await (await client.subscribe(session_id)).settle()
        await talk.ask(conversation_id)
        assert kinds(await client.until("conversation_end"))[0] == "conversation_start"


async def test_cursor_into_a_trimmed_log_is_told_so_and_later_turns_follow(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES, [Say("second")])
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        await talk.ask(conversation_id)
        first = list(await client.until("conversation_end"))
    await talk.ask(conversation_id)
    await talk.store.log.trim(2**62)
    for cursor, expired in ((first[3][0], True), (first[-1][0], False)):
        async with tab(talk) as client:
            await client.subscribe(session_id, cursor)
            if expired:
                assert await client.error() == ("EVENTS_EXPIRED", session_id)
            events = await client.until("conversation_end")
            assert "second" in [it["data"].get("content") for _, it in events]
            assert kinds(events)[0] == "conversation_start"


# Credentials


@ONLY_SQLITE
async def test_third_unknown_session_ends_a_strangers_socket(guarded: Talk):
    _, session_id = await conversation(guarded, **signed("alice"))
    async with tab(guarded) as client:
        await client.subscribe(session_id)
        for strange in ("guessed", session_id[:-1] + "é", ""):
            await client.subscribe(strange)
            assert await client.error() == ("CONVERSATION_NOT_FOUND", strange)
        assert await client.closed() == 1008


@pytest.mark.parametrize("purge", [False, True])
async def test_deleting_a_conversation_closes_its_subscriptions(
    talk: Talk, model: ScriptedModel, purge: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subscriptions, "LOOK_EVERY_S", 3600)  # it is told, not found
    conversation_id, session_id = await conversation(talk)
    gate = Gate()
    model.script([Say("so far"), Wait(gate)])
    async with tab(talk) as client:
        await talk.begin(conversation_id)
        await (await client.subscribe(session_id)).until("text_delta")
        await talk.client.delete(f"/api/conversations/{conversation_id}?purge={str(purge).lower()}")
        await client.until("conversation_end")
        assert client.events[-1][1]["data"] == {"reason": "interrupted"}
        assert await client.error() == ("CONVERSATION_NOT_FOUND", session_id)
        told = len(client.events)
        await client.subscribe(session_id)
        assert await client.error() == ("CONVERSATION_NOT_FOUND", session_id)
        if not purge:
            await talk.client.post(f"/api/conversations/{conversation_id}/restore")
            await talk.ask(conversation_id)
            await client.settle()
        assert len(client.events) == told


async def test_rotated_session_opens_nothing_any_more_not_even_the_running_turn(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("seen"), Wait(gate), Say(" unseen")])
    conversation_id, session_id = await conversation(talk)
    turn_id = await talk.begin(conversation_id)
    async with tab(talk) as old, tab(talk) as new:
        await (await old.subscribe(session_id)).until("conversation_responding")
        rotated = await talk.client.post(f"/api/conversations/{conversation_id}/session")
        assert await old.error() == ("CONVERSATION_NOT_FOUND", session_id)
        gate.open()
        await talk.events(turn_id)
        await old.subscribe(session_id)
        assert await old.error() == ("CONVERSATION_NOT_FOUND", session_id)
        await new.subscribe(rotated.json()["sessionId"], old.events[0][0])
        events = await new.until("conversation_end")
        assert [it["data"]["text"] for _, it in events if it["type"] == "text_delta"] == ["seen", " unseen"]
        assert len(old.events) == 4


@ONLY_SQLITE
async def test_session_id_is_in_no_log_line(
    talk: Talk, model: ScriptedModel, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "threadkeep")
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()
        await talk.ask(conversation_id)
        await client.until("conversation_end")
        await client.subscribe(session_id, "nonsense")
        await client.subscribe("guessed-session")
        await client.settle()
        await talk.client.delete(f"/api/conversations/{conversation_id}")
        await client.error()
    await until(lambda: "/ws" in caplog.text)  # the line is written when the socket has gone
    assert session_id not in caplog.text
    assert "guessed-session" not in caplog.text


async def test_served_at_debug_level_nothing_secret_is_logged(tmp_path: Path):
    with Server(tmp_path, log_level="debug", gateway="openai") as running:
        url = f"ws{running.url.removeprefix('http')}/ws?token=in-the-address"
        async with connect(url, subprotocols=[Subprotocol("bearer.in-the-protocol")]) as socket:
            client = Tab(socket)
            await client.subscribe("in-a-message")
            assert await client.error() == ("CONVERSATION_NOT_FOUND", "in-a-message")
            await client.send(type="auth", headers={"Authorization": "Bearer in-a-sign-in"})
            await client.settle()
        running.stop()
    assert "/ws" in running.output
    for secret in ("in-the-address", "in-the-protocol", "in-a-message", "in-a-sign-in"):
        assert secret not in running.output


# Several sessions


@ONLY_SQLITE
async def test_socket_follows_several_sessions_and_leaves_one(talk: Talk, model: ScriptedModel):
    left, stayed = await conversation(talk), await conversation(talk)
    async with tab(talk) as client:
        for _, session_id in (left, stayed):
            await client.subscribe(session_id)
        await client.settle()
        await asyncio.gather(talk.ask(left[0]), talk.ask(stayed[0]))
        events = await client.until("conversation_end", 2)
        for conversation_id, _ in (left, stayed):
            own = [it for it in events if it[1]["context"]["imageId"] == conversation_id]
            assert kinds(own) == ONE_PIECE
        client.events.clear()
        await client.send(type="unsubscribe", sessionId=left[1])
        await client.send(type="unsubscribe", sessionId="never subscribed")
        await client.settle()
        await talk.ask(left[0])
        await talk.ask(stayed[0])
        events = await client.until("conversation_end")
        assert {it["context"]["imageId"] for _, it in events} == {stayed[0]}


@ONLY_SQLITE
async def test_stranger_follows_so_many_sessions_and_no_more(guarded: Talk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ws, "MOST_SUBSCRIPTIONS", 2)
    ids = [(await conversation(guarded, **signed("alice")))[1] for _ in range(3)]
    async with tab(guarded) as client:
        for session_id in ids:
            await client.subscribe(session_id)
        assert await client.error() == ("INVALID_REQUEST", ids[2])
        await client.send(type="unsubscribe", sessionId=ids[0])
        await (await client.subscribe(ids[2])).settle()
        assert len(client.responses) == 2


async def test_storm_of_subscriptions_changes_nothing(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES)
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        for _ in range(300):
            await client.subscribe(session_id)
        for _ in range(50):
            await client.send(type="unsubscribe", sessionId=session_id)
            await client.subscribe(session_id)
        await client.settle()
        await talk.ask(conversation_id)
        assert kinds(await client.until("conversation_end")) == WHOLE_TURN
        await client.settle()
        for _ in range(20):
            await client.subscribe(session_id, client.events[0][0])
        await client.settle()
    assert kinds(client.events[: len(WHOLE_TURN)]) == WHOLE_TURN


async def test_fifty_sockets_are_told_the_same(talk: Talk, model: ScriptedModel):
    model.script(TWO_PIECES)
    conversation_id, session_id = await conversation(talk)
    sockets = [await connect(f"ws{talk.url.removeprefix('http')}/ws") for _ in range(50)]
    tabs = [await Tab(socket).subscribe(session_id) for socket in sockets]
    await asyncio.gather(*(it.settle() for it in tabs))
    await talk.ask(conversation_id)
    told = await asyncio.gather(*(it.until("conversation_end") for it in tabs))
    assert kinds(told[0]) == WHOLE_TURN
    assert all(it == told[0] for it in told)
    await asyncio.gather(*(socket.close() for socket in sockets))


# Requests


async def test_conversation_is_made_spoken_in_and_stopped_over_the_socket(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("half"), Wait(gate), Say("whole")])
    agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    async with tab(talk) as client:
        made = await client.request("image_create", containerId=agent_id, config={"name": "Named"})
        (session_id,) = made["__subscriptions"]
        record = made["record"]
        assert (record["containerId"], record["sessionId"], record["name"]) == (agent_id, session_id, "Named")
        image_id = record["imageId"]
        assert (await talk.client.get(f"/api/conversations/{image_id}")).json()["title"] == "Named"
        await client.subscribe(session_id)
        sent = await client.request("message_send", imageId=image_id, content="Hello?")
        assert (sent["imageId"], sent["agentId"]) == (image_id, image_id)
        await client.until("text_delta")
        refused = await client.request("message_send", imageId=image_id, content="Again?")
        assert refused["errorCode"] == "TURN_IN_PROGRESS"
        stopped = await client.request("agent_interrupt", imageId=image_id)
        assert "error" not in stopped
        if kinds(client.events)[-1] != "conversation_end":
            await client.until("conversation_end")
        assert client.events[-1][1]["data"] == {"reason": "interrupted"}
        assert "error" not in await client.request("agent_interrupt", imageId=image_id)
    asked, reply = await talk.messages(image_id)
    assert (asked["content"], reply["content"], reply["status"]) == ("Hello?", "half", "CANCELLED")


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("image_create", {}, "INVALID_REQUEST"),
        ("image_create", {"containerId": "nobody"}, "AGENT_NOT_FOUND"),
        ("image_create", {"containerId": 7}, "INVALID_REQUEST"),
        ("message_send", {"imageId": "none", "content": "?"}, "CONVERSATION_NOT_FOUND"),
        ("message_send", {"imageId": "{id}", "content": " "}, "MESSAGE_CONTENT_REQUIRED"),
        ("message_send", {"imageId": "{id}", "content": ["?"]}, "INVALID_REQUEST"),
        ("message_send", {"imageId": "{id}"}, "INVALID_REQUEST"),
        ("agent_interrupt", {"imageId": None}, "INVALID_REQUEST"),
        ("agent_interrupt", {"imageId": "none"}, "CONVERSATION_NOT_FOUND"),
    ],
)
async def test_refused_request_gets_a_response_with_the_reason(
    talk: Talk, name: str, data: dict[str, Any], code: str
):
    conversation_id, _ = await conversation(talk)
    if data.get("imageId") == "{id}":
        data = {**data, "imageId": conversation_id}
    async with tab(talk) as client:
        response = await client.request(name, **data)
    assert response["errorCode"] == code
    assert response["error"]


@pytest.fixture
async def guarded(database_url: str, model: ScriptedModel) -> AsyncIterator[Talk]:
    """Threadkeep with sign-in."""
    settings = scripted_settings(
        model,
        database_url=database_url,
        jwt_secret=SECRET,
    )
    async with talking(settings) as talk:
        yield talk


def token(user: str, ttl_s: int = 600) -> str:
    return issue_token(SECRET, User(UserId(user), UserRole.USER), ttl_s)


def signed(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(user)}"}


@ONLY_SQLITE
async def test_requests_need_a_token_and_reading_a_session_needs_none(guarded: Talk, model: ScriptedModel):
    alice = {"Authorization": f"Bearer {token('alice')}"}
    conversation_id, session_id = await conversation(guarded, **alice)
    model.script([Say("for whoever knows the session")])
    bearer = [Subprotocol(f"bearer.{token('alice')}")]
    by_header: dict[str, Any] = {"additional_headers": alice}
    by_protocol: dict[str, Any] = {"subprotocols": bearer}
    async with (
        tab(guarded) as stranger,
        tab(guarded, **by_header) as header,
        tab(guarded, **by_protocol) as protocol,
        tab(guarded, subprotocols=[*bearer, Subprotocol("agentx")]) as both,
    ):
        assert (protocol.socket.subprotocol, both.socket.subprotocol) == (bearer[0], "agentx")
        await (await stranger.subscribe(session_id)).settle()
        for client in (header, protocol, both):
            assert "error" not in await client.request("agent_interrupt", imageId=conversation_id)
        sent = {"imageId": conversation_id, "content": "Hi"}
        assert (await stranger.request("message_send", **sent))["errorCode"] == "UNAUTHENTICATED"
        assert "error" not in await protocol.request("message_send", **sent)
        assert kinds(await stranger.until("conversation_end"))[0] == "conversation_start"


@ONLY_SQLITE
async def test_bad_or_misplaced_token_signs_nobody_in(guarded: Talk):
    alice = {"Authorization": f"Bearer {token('alice')}"}
    conversation_id, _ = await conversation(guarded, **alice)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"subprotocols": [Subprotocol(f"bearer.{token('alice', -60)}")]}, "UNAUTHENTICATED"),
        ({"subprotocols": [Subprotocol("bearer.nonsense")]}, "UNAUTHENTICATED"),
        ({"subprotocols": [Subprotocol("bearer.")]}, "UNAUTHENTICATED"),
        (
            {"additional_headers": alice, "subprotocols": [Subprotocol(f"bearer.{token('bob')}")]},
            "UNAUTHENTICATED",
        ),
        ({"additional_headers": {"Authorization": f"Bearer {token('bob')}"}}, "CONVERSATION_NOT_FOUND"),
    ]
    for options, code in wrong:
        async with tab(guarded, **options) as client:
            response = await client.request("message_send", imageId=conversation_id, content="Hi")
            assert response["errorCode"] == code
    url = f"ws{guarded.url.removeprefix('http')}/ws?token={token('alice')}&access_token={token('alice')}"
    async with connect(url) as socket:
        response = await Tab(socket).request("message_send", imageId=conversation_id, content="Hi")
        assert response["errorCode"] == "UNAUTHENTICATED"


# Those who misbehave


@ONLY_SQLITE
@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
async def test_strange_page_is_refused(talk: Talk, origin: str):
    with pytest.raises(InvalidStatus) as refused:
        async with tab(talk, origin=Origin(origin)):
            pass
    assert refused.value.response.status_code == 403
    async with tab(talk, origin=Origin(talk.url)) as client:
        await client.settle()


BAD_MESSAGES = [
    *("", "not json", "[]", "7", "null", '"subscribe"', "{}", '{"type": 5}', '{"type": "unknown"}'),
    '{"type": "subscribe", "sessionId": 7}',
    '{"type": "subscribe", "sessionId": "a", "afterCursor": {}}',
    '{"type": "subscribe", "sessionId": "a\\u0000b"}',
    '{"type": "message_send_request", "data": []}',
    '{"type": "subscribe", "sessionId": "a", "data": ' + '{"a":' * 500 + "1" + "}" * 500 + "}",
    '{"__ack": 7}',
    b"\xff\xfe",
    b"\x00",
]


@ONLY_SQLITE
async def test_malformed_message_gets_a_response_and_the_socket_stays(talk: Talk, model: ScriptedModel):
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as client:
        await client.subscribe(session_id)
        for message in BAD_MESSAGES:
            await client.socket.send(message)
            assert await client.error() == ("INVALID_REQUEST", "")
        await client.send(__ack="anything")
        await client.settle()
        assert len(client.responses) == len(BAD_MESSAGES) + 1
        await talk.ask(conversation_id)
        assert kinds(await client.until("conversation_end"))[0] == "conversation_start"


@ONLY_SQLITE
async def test_message_that_is_too_big_ends_a_strangers_socket(guarded: Talk):
    async with tab(guarded) as client:
        await client.send(type="x" * (SMALL_MESSAGE_BYTES - 100))
        assert (await client.error())[0] == "INVALID_REQUEST"
        await client.send(type="x" * SMALL_MESSAGE_BYTES)
        assert (await client.error())[0] == "PAYLOAD_TOO_LARGE"
        assert await client.closed() == 1009


async def test_sockets_that_follow_nothing_are_so_many_at_most(model: ScriptedModel, tmp_path: Path):
    model.script(TWO_PIECES)
    settings = scripted_settings(model, data=tmp_path / "data", embedding_url="off", max_idle_sockets=2)
    async with talking(settings) as talk:
        conversation_id, session_id = await conversation(talk)
        async with tab(talk) as follower:
            await (await follower.subscribe(session_id)).settle()
            async with tab(talk) as oldest, tab(talk) as idle:
                for client in (oldest, idle):
                    await client.settle()
                async with tab(talk) as newcomer:
                    await newcomer.settle()
                    assert await oldest.closed() == 1013
                    await idle.settle()
                    await follower.send(type="unsubscribe", sessionId=session_id)
                    assert (
                        await idle.closed() == 1013
                    )  # it follows nothing any more, and is the newest of those
                    await (await newcomer.subscribe(session_id)).settle()
                    await talk.ask(conversation_id)
                    assert kinds(await newcomer.until("conversation_end"))[0] == "conversation_start"


@ONLY_SQLITE
async def test_client_that_does_not_read_is_dropped_and_comes_back(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "threadkeep.ws")
    gate = Gate()
    model.script([*[Say("0123456789" * 50_000)] * 20, Wait(gate), Say("end")])
    conversation_id, session_id = await conversation(talk)
    async with tab(talk) as reading, tab(talk, max_queue=1, compression=None, close_timeout=1) as stuck:
        await (await reading.subscribe(session_id)).settle()
        await talk.begin(conversation_id)
        await reading.until("text_delta", 20)
        with monkeypatch.context() as patch:
            patch.setattr(ws, "SLOWEST_READ_S", 0.1)
            await stuck.subscribe(session_id)
            await until(lambda: "client that stopped reading" in caplog.text)
        gate.open()
        whole = await reading.until("conversation_end")  # neither the turn nor others waited
        assert await stuck.closed() == 1006
        assert 0 < len(stuck.events) < len(whole)
        assert stuck.events == whole[: len(stuck.events)]
    async with tab(talk) as client:
        await client.subscribe(session_id, stuck.events[-1][0])
        assert await client.until("conversation_end") == whole[len(stuck.events) :]


async def test_server_pings_and_leaves_who_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "PING_EVERY_S", 0.1)
    app = create_app(Settings.load({}, data=tmp_path / "data", gateway="openai"))
    listener, ours = server.listen("127.0.0.1", 0), uvicorn.Server(server.uvicorn_config(app, 1))
    async with app.lifespan():
        serving = asyncio.create_task(ours.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        kind, length = await reader.readexactly(2)
        assert (kind, len(await reader.readexactly(length))) == (PING, length)
        kind, length = await reader.readexactly(2)  # for want of an answer
        assert (kind, int.from_bytes((await reader.readexactly(length))[:2])) == (CLOSE, 1011)
        writer.close()
        await writer.wait_closed()
        ours.should_exit = True
        await serving


# Several nodes


@asynccontextmanager
async def two_nodes(postgres: Postgres, model: ScriptedModel) -> AsyncGenerator[tuple[Talk, Talk]]:
    settings = scripted_settings(
        model,
        database_url=postgres.create_database(template=TEMPLATE),
    )
    async with talking(settings) as one, talking(settings) as other:
        yield one, other


@ONLY_SQLITE
async def test_subscription_that_fails_unexpectedly_is_ended_and_its_client_told(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    conversation_id, session_id = await conversation(talk)
    model.script([Say("Because.")])
    by_session = talk.store.conversations.by_session
    async with tab(talk) as client:
        await (await client.subscribe(session_id)).settle()

        async def fail(session_id: str) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(talk.store.conversations, "by_session", fail)
        await talk.ask(conversation_id)
        assert await client.error() == ("INTERNAL_ERROR", session_id)
        monkeypatch.setattr(talk.store.conversations, "by_session", by_session)
        await client.subscribe(session_id)  # again: it works
        await client.settle()


@pytest.mark.parametrize("signals", ["heard", "lost"])
async def test_session_is_followed_on_any_node(
    postgres: Postgres, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, signals: str
):
    if signals == "lost":

        async def hear_nothing(bus: PostgresBus) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(PostgresBus, "_listen", hear_nothing)
        monkeypatch.setattr(subscriptions, "LOOK_EVERY_S", 0.3)
    gate = Gate()
    model.script(TWO_PIECES, [Say("mo"), Wait(gate), Say("re")])
    async with two_nodes(postgres, model) as (one, other):
        conversation_id, session_id = await conversation(one)
        async with tab(one) as here, tab(other) as there, tab(other) as late:
            for client in (here, there):
                await (await client.subscribe(session_id)).settle()
            await one.ask(conversation_id)
            await there.until("conversation_end")
            await one.begin(conversation_id)
            await gate.reached()
            await late.subscribe(session_id, there.events[2][0])
            await late.until("conversation_end")
            gate.open()
            await asyncio.gather(
                here.until("conversation_end", 2),
                there.until("conversation_end"),
                late.until("conversation_end"),
            )
            assert here.events == there.events
            assert late.events == here.events[3:]
            await one.client.delete(f"/api/conversations/{conversation_id}")
            for client in (here, there, late):
                assert await client.error() == ("CONVERSATION_NOT_FOUND", session_id)
