"""Threadkeep inside FastAPI and Starlette applications, at any path, under the host's own sign-in."""

import asyncio
import json
import logging
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from fastapi import HTTPException
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount
from websockets.asyncio.client import connect

from tests.hosts.applications import (
    Mounting,
    in_fastapi,
    in_starlette,
    new_chat,
    session_user,
    visiting,
)
from tests.http.calls import refusal
from threadkeep import User, UserRole
from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import UserId
from threadkeep.http import page
from threadkeep.http.app import Threadkeep
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, listening
from threadkeep.testing.waiting import until

JSON = {"Accept": "application/json"}
SECRET = "postgresql://admin:hunter2@db"


@pytest.fixture
async def chat(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Threadkeep]:
    """Threadkeep under the host's sign-in; closed at the end, however it was started."""
    chat = new_chat(tmp_path, gateway_url=model.url, model="scripted")
    yield chat
    async with chat.lifespan():
        pass


@pytest.fixture
def built_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page as the build leaves it, with addresses relative to itself."""
    assets = tmp_path / "page" / "assets"
    assets.mkdir(parents=True)
    (tmp_path / "page" / "index.html").write_text('<html><script src="./assets/index-a.js"></script></html>')
    (assets / "index-a.js").write_text("the page's program")
    monkeypatch.setattr(page.page_routes, "__kwdefaults__", {"embedded": False, "folder": assets.parent})


async def test_host_without_a_model_is_warned_at_the_start_and_users_are_told(
    built_page: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def nothing(name: str) -> None:
        """The package brings no demonstration model."""

    monkeypatch.setattr("threadkeep.bootstrap.models.weights_folder", nothing)
    chat = new_chat(tmp_path, gateway="local")
    async with chat.lifespan(), visiting(in_fastapi(chat, "/chat")) as client:
        assert "No model is connected." in caplog.text
        assert 'data-model="none"' in (await client.get("/chat/")).text
        refusal(await client.post("/chat/api/chat", json={"content": "Hello"}), 409, "GATEWAY_NOT_CONFIGURED")
        assert (await client.get("/chat/api/chat/messages")).json()["items"] == []


@pytest.mark.parametrize("mounting", [in_starlette, in_fastapi])
@pytest.mark.parametrize("path", ["/chat", "/a/deep/place", "/聊天"])
async def test_everything_works_below_any_path(
    built_page: None, tmp_path: Path, model: ScriptedModel, mounting: Mounting, path: str
):
    chat = new_chat(tmp_path, gateway_url=model.url, model="scripted")
    host = mounting(chat, path)
    async with chat.lifespan(), visiting(host) as client:
        assert (await client.get("/")).text == "the host's own page"
        assert (await client.get(path)).headers["location"] == str(client.base_url.join(f"{path}/"))
        start = await client.get(f"{path}/")
        assert "frame-ancestors 'self'" in start.headers["content-security-policy"]
        (program,) = re.findall('src="(.*?)"', start.text)
        assert (await client.get(start.url.join(program))).text == "the page's program"
        agents = (await client.get(f"{path}/api/agents")).json()["items"]
        made = await client.put(f"{path}/api/agents/{agents[0]['id']}/conversation")
        assert (await client.get(made.headers["location"])).json()["id"] == made.json()["id"]
        sent = await client.post(
            f"{path}/api/conversations/{made.json()['id']}/messages", json={"content": "Hi"}
        )
        assert sent.text.count("event: done") == 1
        turn = await client.get(sent.headers["location"])
        assert turn.json()["status"] == "COMPLETED"
        assert (await client.get(f"{path}/docs")).status_code == 200
        refusal(await client.get(f"{path}/nowhere"), 404, "NOT_FOUND")
        refusal(await client.get(f"{path}/api/turns/x"), 404, "TURN_NOT_FOUND")


async def test_mounted_in_what_is_mounted_behind_a_proxy_that_takes_a_part_of_the_path(chat: Threadkeep):
    host = Starlette(routes=[Mount("/app", in_starlette(chat, "/chat"))])
    async with (
        listening(host, root_path="/public", lifespan="off") as url,
        httpx.AsyncClient(base_url=url, cookies={"session": "alice"}) as client,
    ):
        # The proxy sends /public/app/… on to us as /app/…
        agents = (await client.get("/app/chat/api/agents")).json()["items"]
        made = await client.put(f"/app/chat/api/agents/{agents[0]['id']}/conversation")
        location = f"/public/app/chat/api/conversations/{made.json()['id']}"
        assert made.headers["location"] == location
        assert (await client.get(location.removeprefix("/public"))).json()["id"] == made.json()["id"]


async def test_web_socket_works_below_a_path_and_for_the_hosts_pages_only(chat: Threadkeep):
    async with listening(in_starlette(chat, "/chat")) as url:
        cookie = {"Cookie": "session=alice"}
        async with httpx.AsyncClient(base_url=url, headers=cookie) as client:
            agents = (await client.get("/chat/api/agents")).json()["items"]
        request = {
            "type": "image_create_request",
            "data": {"requestId": "1", "containerId": agents[0]["id"]},
        }
        async with connect(
            f"{url}/chat/ws".replace("http", "ws"),
            additional_headers=cookie,
            origin=url,  # pyright: ignore[reportArgumentType]
        ) as socket:
            await socket.send(json.dumps(request))
            response = json.loads(await socket.recv())
        assert response["data"]["record"]["containerId"] == agents[0]["id"]
        with pytest.raises(Exception, match="403"):
            async with connect(
                f"{url}/chat/ws".replace("http", "ws"),
                additional_headers=cookie,
                origin="https://evil.example",  # pyright: ignore[reportArgumentType]
            ):
                pass


# Starting and ending


async def test_host_that_runs_no_lifespan_starts_it_once_on_first_use(chat: Threadkeep):
    async with visiting(in_fastapi(chat, "/chat")) as client:
        responses = await asyncio.gather(*(client.get("/chat/api/agents") for _ in range(20)))
        assert [response.status_code for response in responses] == [200] * 20
        # One default agent, made once
        assert [len(response.json()["items"]) for response in responses] == [1] * 20


async def test_host_that_runs_the_lifespan_has_it_ready_and_closed_with_itself(
    tmp_path: Path, model: ScriptedModel
):
    for turns in (1, 2):
        chat = new_chat(tmp_path, gateway_url=model.url, model="scripted")
        async with listening(in_starlette(chat, "/chat"), lifespan="on") as url:
            # It holds its folder before anybody asked for anything
            with pytest.raises(StorageRefused, match="is in use"):
                await new_chat(tmp_path).services()
            async with httpx.AsyncClient(base_url=f"{url}/chat", cookies={"session": "alice"}) as client:
                await client.post("/api/chat?wait=true", json={"content": "Hi"}, headers=JSON)
                messages = (await client.get("/api/chat/messages")).json()["items"]
                assert [message["content"] for message in messages] == ["Hi", "OK."] * turns


async def test_database_that_is_away_at_first_is_found_later(tmp_path: Path):
    chat = new_chat(tmp_path)
    holder = new_chat(tmp_path)
    async with visiting(in_fastapi(chat, "/chat")) as client:
        async with holder.lifespan():
            refusal(await client.get("/chat/api/agents"), 503, "STORAGE_UNAVAILABLE")
        assert (await client.get("/chat/api/agents")).status_code == 200
    async with chat.lifespan():
        pass


# Whose request it is


async def test_hosts_sign_in_decides_and_nothing_else(chat: Threadkeep):
    host = in_starlette(chat, "/chat")
    async with visiting(host) as alice, visiting(host, "bob") as bob, visiting(host, None) as nobody:
        assert (await alice.get("/chat/api/me")).json() == {
            "id": "alice",
            "role": "user",
            "installation": ANY,
        }
        response = await nobody.get("/chat/api/me", headers={"Authorization": "Bearer local"})
        refusal(response, 401, "UNAUTHENTICATED")
        await alice.post("/chat/api/chat?wait=true", json={"content": "Hi"}, headers=JSON)
        (own,) = (await alice.get("/chat/api/conversations")).json()["items"]
        assert (await bob.get("/chat/api/conversations")).json()["items"] == []
        refusal(await bob.get(f"/chat/api/conversations/{own['id']}"), 404, "CONVERSATION_NOT_FOUND")
        # Another site's page in alice's browser
        evil = {"Origin": "https://evil.example"}
        refusal(
            await alice.post("/chat/api/chat", json={"content": "x"}, headers=evil),
            403,
            "FORBIDDEN",
            "Origin",
        )


async def test_host_may_look_the_user_up_and_name_admins(tmp_path: Path):
    async def current_user(request: HTTPConnection) -> User | None:
        await asyncio.sleep(0)
        name = session_user(request)
        return User(UserId(name), UserRole.ADMIN if name == "root" else UserRole.USER) if name else None

    chat = new_chat(tmp_path, current_user)
    async with chat.lifespan(), visiting(in_starlette(chat, "/chat"), "root") as root:
        assert (await root.get("/chat/api/me")).json() == {"id": "root", "role": "admin", "installation": ANY}


def raises(error: Exception) -> Callable[[object], str]:
    """A sign-in that fails."""

    def current_user(request: object) -> str:
        raise error

    return current_user


def raises_later(error: Exception) -> Callable[[object], Any]:
    """A sign-in that fails while it is awaited."""

    async def current_user(request: object) -> str:
        raise error

    return current_user


@pytest.mark.parametrize("raising", [raises, raises_later])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RuntimeError(SECRET), 500, "INTERNAL_ERROR"),
        (KeyError(SECRET), 500, "INTERNAL_ERROR"),
        (HTTPException(401, SECRET), 401, "UNAUTHENTICATED"),
        (HTTPException(403, SECRET), 403, "FORBIDDEN"),
        (HTTPException(418, SECRET), 500, "INTERNAL_ERROR"),
    ],
)
async def test_host_that_raises_gives_a_clear_response_that_leaks_nothing(
    tmp_path: Path, raising: Any, error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
):
    chat = new_chat(tmp_path, raising(error))
    async with chat.lifespan(), visiting(in_fastapi(chat, "/chat")) as client:
        for response in (
            await client.get("/chat/api/me"),
            await client.post("/chat/api/agents", json={"name": "x"}),
        ):
            refusal(response, status, code)
            assert "hunter2" not in response.text + str(response.headers)
        # Routes that need no user work as before
        assert (await client.get("/chat/healthz")).status_code == 200
    # The host's mistake is in its log; a refusal is no mistake
    failures = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(failures) == (2 if status == 500 else 0)


async def test_host_that_raises_on_the_web_socket_leaks_nothing_either(tmp_path: Path):
    chat = new_chat(tmp_path, raises(RuntimeError(SECRET)))
    async with (
        listening(in_starlette(chat, "/chat")) as url,
        connect(f"{url}/chat/ws".replace("http", "ws")) as socket,
    ):
        request = {"type": "image_create_request", "data": {"requestId": "1", "containerId": "x"}}
        await socket.send(json.dumps(request))
        response = await socket.recv()
    assert json.loads(response)["data"]["errorCode"] == "INTERNAL_ERROR"
    assert "hunter2" not in str(response)


# A host that keeps its own users in SQLite


async def test_our_file_stands_beside_the_hosts_and_its_users_go_from_both(
    tmp_path: Path, model: ScriptedModel
):
    file = tmp_path / "host.db"
    with closing(sqlite3.connect(file)) as host:
        host.execute("CREATE TABLE users (id text PRIMARY KEY)")
        host.executemany("INSERT INTO users VALUES (?)", [("alice",), ("bob",)])
        host.commit()
    before = file.read_bytes()
    chat = new_chat(tmp_path, gateway_url=model.url, model="scripted")
    app = in_starlette(chat, "/chat")
    async with chat.lifespan(), visiting(app) as alice, visiting(app, "bob") as bob:
        for client in (alice, bob):
            await client.post("/chat/api/chat?wait=true", json={"content": "Hi"}, headers=JSON)
        await alice.post("/chat/api/agents", json={"name": "Own", "systemPrompt": "mine"})
        await chat.delete_user("alice")
        assert (await alice.get("/chat/api/conversations")).json()["items"] == []
        assert len((await bob.get("/chat/api/conversations")).json()["items"]) == 1
        await chat.delete_user("alice")
        await chat.delete_user("somebody who never came")
    assert file.read_bytes() == before
    with closing(sqlite3.connect(tmp_path / "chat" / "threadkeep.db")) as ours:
        kept = [ours.execute(f"SELECT count(*) FROM tk_{it}").fetchone()[0] for it in ("users", "turns")]
        assert kept == [1, 1]
        assert ours.execute("PRAGMA foreign_key_check").fetchall() == []
        names = [name for (name,) in ours.execute("SELECT name FROM tk_agents")]
    assert names == ["Assistant"]


async def test_user_is_deleted_in_the_middle_of_a_turn(chat: Threadkeep, model: ScriptedModel):
    gate = Gate()
    model.script([Say("Once"), Wait(gate), Say(" upon")])
    async with visiting(in_starlette(chat, "/chat")) as client:
        begun = await client.post("/chat/api/chat", json={"content": "A story"}, headers=JSON)
        await until(lambda: model.requests[0].sent_text == ["Once"] if model.requests else False)
        await chat.delete_user("alice")
        gate.open()
        refusal(await client.get(f"/chat/api/turns/{begun.json()['turnId']}"), 404, "TURN_NOT_FOUND")
        sent = await client.post("/chat/api/chat?wait=true", json={"content": "Again"}, headers=JSON)
        assert sent.json()["content"] == "OK."
