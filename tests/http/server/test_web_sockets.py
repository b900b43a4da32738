"""`/ws` on our own server: how much it keeps of a message that is not whole, and from whom."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.conftest import SECRET
from threadkeep import Settings, User, UserRole, create_app
from threadkeep.domain.ids import UserId
from threadkeep.http.server import server
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.protocols.agentx.socket_sign_in import SocketSignIn
from threadkeep.testing.waiting import PATIENCE_S

MB = 1024 * 1024
ALICE = f"Bearer {issue_token(SECRET, User(UserId('alice'), UserRole.USER), 24 * 3600)}"


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncGenerator[str]:
    """The address of `/ws` on a server as operators run it."""
    settings = Settings.load(
        {}, data=tmp_path / "data", gateway="openai", jwt_secret=SECRET, max_body_bytes=2 * MB
    )
    app = create_app(settings)
    listener, ours = server.listen("127.0.0.1", 0), uvicorn.Server(server.uvicorn_config(app, 1))
    async with app.lifespan():
        serving = asyncio.create_task(ours.serve(sockets=[listener]))
        try:
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}/ws"
        finally:
            ours.should_exit = True
            await serving


def request(size: int) -> str:
    data = {"requestId": "1", "imageId": "none", "content": "x" * size}
    return msgspec.json.encode({"type": "message_send_request", "data": data}).decode()


async def response(socket: ClientConnection) -> str:
    async with asyncio.timeout(PATIENCE_S):
        return msgspec.json.decode(await socket.recv())["data"]["errorCode"]


async def is_refused(socket: ClientConnection, message: str | AsyncGenerator[str]) -> bool:
    """Whether a message ends the socket. Whoever still sends may lose the code with which it was closed."""
    with pytest.raises(ConnectionClosed):
        async with asyncio.timeout(PATIENCE_S):
            await socket.send(message)
            await socket.recv()
            await socket.recv()
    return socket.close_code in {1006, 1009}


@pytest.mark.parametrize("pinging", [False, True])
async def test_stranger_cannot_have_a_message_kept_that_does_not_end(tmp_path: Path, pinging: bool):
    async def pieces(socket: ClientConnection) -> AsyncGenerator[str]:
        for _ in range(60):
            yield "x" * 10_000
            if pinging:
                await socket.ping()
        await socket.wait_closed()

    async with served(tmp_path) as url, connect(url) as socket:
        assert await is_refused(socket, pieces(socket))


async def test_stranger_is_refused_a_large_message(tmp_path: Path):
    async with served(tmp_path) as url, connect(url) as socket:
        assert await is_refused(socket, request(MB))


async def test_small_messages_and_pings_may_be_many(tmp_path: Path):
    async with served(tmp_path) as url, connect(url) as socket:
        for _ in range(30):
            await socket.send(request(30_000))
            assert await response(socket) == "UNAUTHENTICATED"
        for _ in range(2_000):
            await socket.ping(os.urandom(100))
        await socket.send(request(10))
        assert await response(socket) == "UNAUTHENTICATED"


async def test_signed_in_client_sends_large_messages_as_soon_as_it_is_open(tmp_path: Path):
    auth = msgspec.json.encode({"type": "auth", "headers": {"Authorization": ALICE}}).decode()
    async with served(tmp_path) as url:
        async with connect(url, additional_headers={"Authorization": ALICE}) as socket:
            await socket.send(request(MB))
            assert await response(socket) == "CONVERSATION_NOT_FOUND"
        async with connect(url) as socket:
            await socket.send(auth)
            await socket.send(request(MB))
            assert await response(socket) == "CONVERSATION_NOT_FOUND"
            assert await is_refused(socket, request(3 * MB))


async def test_large_message_right_behind_a_slow_sign_in_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    renew = SocketSignIn.renew

    async def renew_slowly(self: SocketSignIn, authorization: str) -> None:
        await asyncio.sleep(0.2)
        await renew(self, authorization)

    monkeypatch.setattr(SocketSignIn, "renew", renew_slowly)
    auth = msgspec.json.encode({"type": "auth", "headers": {"Authorization": ALICE}}).decode()
    async with served(tmp_path) as url, connect(url) as socket:
        await socket.send(auth)
        await socket.send(request(MB))
        assert await response(socket) == "CONVERSATION_NOT_FOUND"
    wrong = auth.replace("Bearer ", "Bearer x")
    async with served(tmp_path / "other") as url, connect(url) as socket:
        await socket.send(wrong)
        assert await is_refused(socket, request(MB))
