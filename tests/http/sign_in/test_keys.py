"""A key signs in whatever else does, and what it has open ends soon after the key does."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from websockets.asyncio.client import connect

from tests.conftest import ONLY_POSTGRES, ONLY_SQLITE, SECRET, secret_key_for
from tests.http.calls import refusal
from tests.protocols.agentx.client import agentx
from tests.talking import JSON, Talk, talking
from threadkeep import Settings, User, create_app
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.user import LOCAL, UserRole
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.ports.sign_in import CHECK_KEY_EVERY_S
from threadkeep.services.keys import KNOWN_FOR_S
from threadkeep.testing import Gate, Hang, Say, ScriptedModel, Wait, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S

REVOCATION_S = 5.0
"""What is promised; the checks and what nodes remember must fit into it."""
UNKNOWN = f"tk_{'A' * 43}"


async def make(client: httpx.AsyncClient, *scopes: str, **body: Any) -> dict[str, Any]:
    response = await client.post("/api/keys", json={"name": "a program", "scopes": scopes, **body})
    assert response.status_code == 201, response.text
    return response.json()


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['key']}"}


def test_revocation_reaches_every_stream_in_time():
    assert CHECK_KEY_EVERY_S + KNOWN_FOR_S < REVOCATION_S


@ONLY_SQLITE
async def test_without_sign_in_a_key_counts_and_other_tokens_are_ignored(talk: Talk):
    key = await make(talk.client, "read")
    response = await talk.client.post("/api/agents", json={"name": "x"}, headers=bearer(key))
    refusal(response, 403, "FORBIDDEN")
    me = (await talk.client.get("/api/me", headers=bearer(key))).json()
    assert (me["id"], me["role"]) == ("local", "user")
    refusal(await talk.client.get("/api/me", headers={"x-api-key": UNKNOWN}), 401, "UNAUTHENTICATED")
    for other in ({"Authorization": "Bearer sk-anything"}, {"x-api-key": "sk-anything"}):
        assert (await talk.client.get("/api/me", headers=other)).status_code == 200


@ONLY_SQLITE
async def test_key_made_without_the_servers_token_saves_no_programs(talk: Talk):
    """Without sign-in, only who can read the data folder has programs run, and so do their keys."""
    program = {
        "name": "x",
        "settings": {"mcpServers": {"p": {"command": "npx", "args": ["mcp-server-nothing"]}}},
    }
    plain = {**talk.client.headers, "authorization": "Bearer none"}
    for headers, status in ((plain, 403), (dict(talk.client.headers), 201)):
        made = await talk.client.post("/api/keys", json={"name": "k", "scopes": ["admin"]}, headers=headers)
        response = await talk.client.post("/api/agents", json=program, headers=bearer(made.json()))
        assert response.status_code == status, response.text


async def test_host_application_is_not_asked_about_a_key(tmp_path: Path):
    asked: list[str] = []

    def current_user(request: Request) -> User | None:
        asked.append(request.url.path)
        return User(UserId("alice"), UserRole.ADMIN) if "x-user" in request.headers else None

    app = create_app(
        Settings.load({}, data=tmp_path / "data", gateway="openai", embedding_url="off"),
        current_user=current_user,
    )
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        client.headers["x-user"] = "alice"
        key = await make(client, "chat")
        del client.headers["x-user"]
        asked.clear()
        me = (await client.get("/api/me", headers=bearer(key))).json()
        assert (me["id"], me["role"]) == ("alice", "user")
        refusal(await client.get("/api/me", headers={"x-api-key": UNKNOWN}), 401, "UNAUTHENTICATED")
        assert asked == []
        refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")


@ONLY_SQLITE
async def test_socket_takes_a_key_wherever_it_takes_a_token(talk: Talk):
    key = await make(talk.client, "chat")
    value, url = key["key"], f"ws{talk.url.removeprefix('http')}/ws"
    ways: list[dict[str, Any]] = [
        {"additional_headers": {"Authorization": f"Bearer {value}"}},
        {"additional_headers": {"x-api-key": value}},
        {"subprotocols": [f"bearer.{value}"]},
    ]
    for options in ways:
        async with agentx(talk, **options) as socket:
            assert "error" not in await socket.request("container_list")
    async with agentx(talk, additional_headers={"x-api-key": UNKNOWN}) as socket:
        assert (await socket.request("container_list"))["errorCode"] == "UNAUTHENTICATED"
        await socket.sign_in(f"Bearer {value}")
        assert "error" not in await socket.request("container_list")
    async with connect(f"{url}?token={value}&key={value}", close_timeout=1) as raw:
        assert raw.subprotocol is None


@ONLY_SQLITE
async def test_socket_holds_each_request_against_scope_and_agents(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    elsewhere = await talk.titled_conversation()
    shown = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    read, limited = (
        await make(talk.client, "read"),
        await make(talk.client, "chat", agents=[shown["agentId"]]),
    )
    async with agentx(talk, additional_headers=bearer(read)) as socket:
        assert (await socket.request("image_get", imageId=conversation))["record"]["imageId"] == conversation
        for name, body in (
            ("message_send", {"imageId": conversation, "content": "?"}),
            ("image_delete", {"imageId": conversation}),
            ("image_create", {"containerId": shown["agentId"]}),
        ):
            response = await socket.request(name, **body)
            assert response["errorCode"] == "FORBIDDEN" and "`chat`" in response["error"]
    async with agentx(talk, additional_headers=bearer(limited)) as socket:
        listed = await socket.request("image_list")
        assert [it["imageId"] for it in listed["records"]] == [conversation]
        assert (await socket.request("container_list"))["containerIds"] == [shown["agentId"]]
        for name, body in (
            ("message_send", {"imageId": elsewhere, "content": "?"}),
            ("image_messages", {"imageId": elsewhere}),
            ("image_delete", {"imageId": elsewhere}),
            ("agent_interrupt", {"agentId": elsewhere}),
        ):
            assert (await socket.request(name, **body))["errorCode"] == "CONVERSATION_NOT_FOUND", name
        assert (await socket.request("image_create", containerId="default"))["errorCode"] == "AGENT_NOT_FOUND"


async def ended(events: httpx.Response) -> None:
    """Until a stream is broken off: it can tell that this is not the end."""
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(httpx.RemoteProtocolError):
            async for _ in events.aiter_lines():
                pass


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks and what is remembered, many times as fast."""
    monkeypatch.setattr("threadkeep.ports.sign_in.CHECK_KEY_EVERY_S", 0.02)
    monkeypatch.setattr("threadkeep.services.keys.KNOWN_FOR_S", 0.02)


@ONLY_SQLITE
@pytest.mark.usefixtures("soon")
async def test_streams_and_sockets_of_a_revoked_key_end_and_its_turn_goes_on(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("Thinking"), Hang()])
    conversation = await talk.titled_conversation()
    key, kept = await make(talk.client, "chat"), await make(talk.client, "chat")
    path = f"/api/conversations/{conversation}/messages"
    async with (
        agentx(talk, additional_headers=bearer(key)) as socket,
        agentx(talk, additional_headers=bearer(kept)) as other,
        talk.client.stream("GET", "/api/me/events", headers=bearer(key)) as events,
        talk.client.stream("POST", path, json={"content": "?"}, headers=bearer(key)) as turn,
    ):
        turn_id = turn.headers["location"].rpartition("/")[2]
        assert (await talk.client.delete(f"/api/keys/{key['id']}")).status_code == 204
        await asyncio.gather(ended(events), ended(turn), socket.until(lambda: socket.close_code == 1008))
        assert "error" not in await other.request("container_list")
    stored = await talk.store.turns.get(LOCAL, TurnId(turn_id))
    assert stored is not None and stored.is_active and stored.key_id == key["id"]


@ONLY_SQLITE
@pytest.mark.usefixtures("soon")
async def test_stream_ends_when_its_key_expires_and_so_does_a_socket_that_signed_in_later(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
):
    key = await make(talk.client, "chat", expiresAt="2999-01-01T00:00:00Z")
    async with (
        agentx(talk) as socket,
        talk.client.stream("GET", "/api/me/events", headers=bearer(key)) as events,
    ):
        await socket.sign_in(f"Bearer {key['key']}")
        assert "error" not in await socket.request("container_list")
        monkeypatch.setattr((await talk.app.services()).keys, "_clock", lambda: 32_472_144_000_000)
        await asyncio.gather(ended(events), socket.until(lambda: socket.close_code == 1008))


@ONLY_POSTGRES
@pytest.mark.usefixtures("soon")
async def test_key_that_another_node_revokes_ends_its_streams(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    def settings(name: str) -> Settings:
        return scripted_settings(
            model,
            data=tmp_path / name,
            database_url=database_url,
            secret_key=secret_key_for(database_url),
            jwt_secret=SECRET,
            embedding_url="off",
        )

    alice = {"Authorization": f"Bearer {issue_token(SECRET, User(UserId('alice')), 600)}"}
    async with talking(settings("here")) as here, talking(settings("there")) as there:
        here.client.headers.update(alice)
        there.client.headers.update(alice)
        key = await make(here.client, "read")
        async with (
            there.client.stream("GET", "/api/me/events", headers=bearer(key)) as events,
            agentx(there, additional_headers=bearer(key)) as socket,
        ):
            assert (await here.client.delete(f"/api/keys/{key['id']}")).status_code == 204
            await asyncio.gather(ended(events), socket.until(lambda: socket.close_code == 1008))
        refusal(await there.client.get("/api/me", headers=bearer(key)), 401, "UNAUTHENTICATED")


@ONLY_SQLITE
async def test_limited_key_hears_only_of_its_agents(talk: Talk):
    conversation = await talk.titled_conversation()
    elsewhere = await talk.titled_conversation()
    shown = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    key = await make(talk.client, "read", agents=[shown["agentId"]])
    async with talk.client.stream("GET", "/api/me/events", headers=bearer(key)) as events:
        lines = events.aiter_lines()
        async for line in lines:
            if "reset" in line:
                break
        for id_ in (elsewhere, conversation):
            await talk.client.patch(f"/api/conversations/{id_}", json={"title": "New"})
        async with asyncio.timeout(PATIENCE_S):
            async for line in lines:
                assert elsewhere not in line
                if conversation in line:
                    break


@ONLY_SQLITE
async def test_last_use_is_not_written_for_each_request(talk: Talk, monkeypatch: pytest.MonkeyPatch):
    key = await make(talk.client, "read")
    keys = (await talk.app.services()).keys
    noted: list[int] = []
    note_use = talk.store.keys.note_use

    async def count(key_id: Any, now: int) -> None:
        noted.append(now)
        await note_use(key_id, now)

    monkeypatch.setattr(talk.store.keys, "note_use", count)
    now = 1_900_000_000_000
    monkeypatch.setattr(keys, "_clock", lambda: now)
    for _ in range(5):
        await talk.client.get("/api/me", headers=bearer(key))
    now += 60_000
    await talk.client.get("/api/me", headers=bearer(key))
    assert noted == [now - 60_000, now]


@ONLY_SQLITE
async def test_turn_of_a_queued_message_belongs_to_the_key_that_queued_it(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One."), Wait(gate)], [Say("Two.")], [Say("Three.")])
    conversation = await talk.titled_conversation()
    key, path = await make(talk.client, "chat"), f"/api/conversations/{conversation}/messages"
    first = await talk.begin(conversation)
    for headers in (bearer(key), {}):
        queued = {"content": "Next?", "whenBusy": "queue"}
        response = await talk.client.post(path, json=queued, headers={**JSON, **headers})
        assert response.status_code == 202, response.text
    gate.open()
    turns = [first]
    while len(turns) < 3:
        async for _ in talk.follow(turns[-1]):
            pass
        turns = list(dict.fromkeys(it["turnId"] for it in await talk.messages(conversation)))
    kept = [await talk.store.turns.get(LOCAL, TurnId(it)) for it in turns]
    assert [it and it.key_id for it in kept] == [None, key["id"], None]


@ONLY_SQLITE
async def test_limited_key_neither_reads_nor_sends_files_of_other_agents(talk: Talk, model: ScriptedModel):
    model.script([Say("I see.")], [Say("And I.")])
    conversation, elsewhere = await talk.titled_conversation(), await talk.titled_conversation()
    own = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    key = await make(talk.client, "chat", agents=[own])

    async def upload(headers: dict[str, str]) -> str:
        sent = {"files": ("note.txt", b"the secret of the other agent")}
        return (await talk.client.post("/api/files", files=sent, headers=headers)).json()["items"][0]["id"]

    theirs = await upload({})
    body = {"content": "Look.", "files": [theirs]}
    path = "/api/conversations/{}/messages?wait=true"
    sent = await talk.client.post(path.format(elsewhere), json=body, headers=JSON)
    assert sent.status_code == 200, sent.text
    refusal(await talk.client.get(f"/api/files/{theirs}", headers=bearer(key)), 404, "FILE_NOT_FOUND")
    stolen = await talk.client.post(path.format(conversation), json=body, headers={**JSON, **bearer(key)})
    refusal(stolen, 404, "FILE_NOT_FOUND", "files")
    mine = await upload(bearer(key))
    body = {"content": "Look.", "files": [mine]}
    sent = await talk.client.post(path.format(conversation), json=body, headers={**JSON, **bearer(key)})
    assert sent.status_code == 200, sent.text
    assert (await talk.client.get(f"/api/files/{mine}", headers=bearer(key))).status_code == 200
