"""A token that has expired, or whose user was deleted, opens nothing, and what is open ends."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import jwt
import pytest
from starlette.requests import HTTPConnection
from starlette.types import Message

from tests.conftest import SECRET, Api, secret_key_for
from tests.http.calls import refusal
from tests.http.signing_in import request
from tests.protocols.agentx.client import agentx
from tests.talking import talking
from threadkeep import Settings, create_app
from threadkeep.domain.errors import Forbidden, StorageUnavailable, Unauthenticated
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.handling import stream
from threadkeep.handling.stream import EventStream, StreamEnd, broken_off
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.http.sign_in.presence import Presence
from threadkeep.testing import ScriptedModel, scripted_settings

ALICE = User(UserId("alice"))


def client_with(api: Api, **claims: object) -> httpx.AsyncClient:
    given = {"sub": "alice", "exp": int(time.time()) + 600, **claims}
    return api.client(Authorization=f"Bearer {jwt.encode(given, SECRET, 'HS256')}")


async def test_token_from_before_a_deletion_is_refused_on_every_node_and_after_restarts(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, database_url: str, tmp_path: Path
):
    undated, of_yesterday = client_with(api), client_with(api, nbf=int(time.time()) - 86_400)
    for client in (alice, undated, of_yesterday):
        assert (await client.get("/api/me")).status_code == 200
    assert (await alice.delete("/api/users/alice")).status_code == 204
    for client in (alice, undated, of_yesterday):
        refusal(await client.get("/api/conversations"), 401, "UNAUTHENTICATED")
        refusal(await client.post("/api/agents", json={"name": "Again"}), 401, "UNAUTHENTICATED")
    # Nobody else is concerned, and a new token is good.
    assert (await bob.get("/api/me")).status_code == 200
    assert (await api.as_new_user("alice").get("/api/me")).status_code == 200
    refusal(await alice.get("/api/me"), 401, "UNAUTHENTICATED")  # the old one is not, even now
    settings = Settings.load(
        {},
        data=tmp_path / "other",
        database_url=database_url,
        secret_key=secret_key_for(database_url) or "a-key-for-secrets-that-is-long-enough",
        jwt_secret=SECRET,
    )
    if not settings.on_sqlite:  # a file has one node at a time
        other = create_app(settings)
        async with other.lifespan():
            node = Api(other, api.store, api.clients)
            refusal(await node.client(**alice.headers).get("/api/me"), 401, "UNAUTHENTICATED")
            assert (await node.as_new_user("alice").get("/api/me")).status_code == 200


async def test_deletion_of_a_user_who_never_wrote_anything_counts(api: Api, alice: httpx.AsyncClient):
    assert (await alice.delete("/api/users/alice")).status_code == 204
    refusal(await alice.get("/api/me"), 401, "UNAUTHENTICATED")


class Door:
    """Signs in whomever the test says."""

    def __init__(self) -> None:
        self.says: User | Exception = ALICE

    async def user(self, request: HTTPConnection) -> User:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def close(self) -> None:
        pass


class Deletions:
    """The only service that is needed: when alice was deleted."""

    def __init__(self) -> None:
        self.deleted_at: int | None = None

    async def services(self) -> Any:
        return self

    @property
    def users(self) -> Self:
        return self

    async def check_present(self, user: User, *, present_since: int | None = None) -> None:
        if self.deleted_at is not None and present_since is not None and present_since <= self.deleted_at:
            raise Unauthenticated("deleted")


async def test_what_is_open_is_checked_again_and_again():
    door, deletions = Door(), Deletions()
    check = Presence(door, deletions.services, lambda: 1000).checking(request, "alice")
    await check()
    for outage in (StorageUnavailable("away"), RuntimeError("a host's mistake")):
        door.says = outage
        await check()
    for refused in (Unauthenticated("expired"), Forbidden("no longer"), User(UserId("bob"))):
        door.says = refused
        with pytest.raises((Unauthenticated, Forbidden)):
            await check()
    door.says = ALICE
    deletions.deleted_at = 999  # somebody of this id, earlier
    await check()
    deletions.deleted_at = 1000
    with pytest.raises(Unauthenticated):
        await check()


class Silent:
    """A source that says nothing until it is woken."""

    has_ended = True
    is_paused = False

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[bytes]:
        await self._woken.wait()
        self._woken.clear()
        return ()

    def wake(self) -> None:
        self._woken.set()


class Raw:
    """Passes bytes on."""

    def encode_chunk(self, chunk: bytes) -> bytes:
        return chunk

    def end(self, how: StreamEnd) -> bytes:
        return b"the end"


async def test_stream_ends_without_an_end_when_its_user_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream, "HEARTBEAT_EVERY_S", 0.01)
    source, sent, checks = Silent(), list[Message](), 0

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise Unauthenticated("expired")

    async def receive() -> Message:
        return await asyncio.Future[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    following = EventStream(source, Raw(), {})
    following.end_when_refused(check, every_s=60)
    await following({}, receive, send)
    assert checks == 3
    assert broken_off.get()
    assert not any(b"the end" in it.get("body", b"") for it in sent)


async def test_open_streams_and_sockets_end_when_their_user_is_deleted(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream, "HEARTBEAT_EVERY_S", 0.02)
    monkeypatch.setattr("threadkeep.ports.sign_in.CHECK_EVERY_S", 0.02)
    settings = scripted_settings(model, data=tmp_path / "data", jwt_secret=SECRET)
    headers, bobs = (
        {"Authorization": f"Bearer {issue_token(SECRET, User(UserId(name)), 600)}"}
        for name in ("alice", "bob")
    )
    async with (
        talking(settings) as talk,
        agentx(talk, additional_headers=headers) as socket,
        agentx(talk, additional_headers=bobs) as other,
        talk.client.stream("GET", "/api/me/events", headers=headers) as events,
    ):
        assert (await talk.client.delete("/api/users/alice", headers=headers)).status_code == 204
        with pytest.raises(httpx.RemoteProtocolError):  # broken off: it can tell that this is not the end
            async for _ in events.aiter_lines():
                pass
        await socket.until(lambda: socket.close_code == 1008)
        assert "error" not in await other.request("container_list")
