"""What a connection may send before anybody reads it, and how long it may take: on a real socket."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tests.conftest import SECRET
from threadkeep import Settings, create_app
from threadkeep.http.edge import MOST_HEADER_BYTES
from threadkeep.http.server.connection import ConnectionLimits
from threadkeep.http.server.server import SignalFreeServer, listen, uvicorn_config
from threadkeep.testing.waiting import PATIENCE_S, until

PATIENT = ConnectionLimits(header_s=PATIENCE_S, keep_alive_s=int(PATIENCE_S))
ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
ASK_AND_CLOSE = ASK + b"Connection: close\r\n\r\n"
HUGE = 3 * MOST_HEADER_BYTES


@dataclass(frozen=True)
class Served:
    """A server in the test's own loop."""

    server: uvicorn.Server
    address: tuple[str, int]

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator["Line"]:
        """A connection to it."""
        reader, writer = await asyncio.open_connection(*self.address)
        try:
            yield Line(reader, writer)
        finally:
            writer.close()

    async def response(self, sent: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the error of the response to these bytes, after which the server must close."""
        async with self.connect() as line:
            await line.send(sent)
            return parsed(await line.all())


@dataclass(frozen=True)
class Line:
    """One connection, from the client's side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, sent: bytes) -> None:
        self.writer.write(sent)
        await self.writer.drain()

    async def all(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    async def status(self) -> int:
        """The status of the next response."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(it for it in head.split(b"\r\n") if it.lower().startswith(b"content-length"))
            await self.reader.readexactly(int(length.split(b":")[1]))
        return int(head.split()[1])

    async def is_closed(self) -> bool:
        """Whether the server closes it without a word."""
        try:
            return await self.all() == b""
        except ConnectionResetError:
            return True


def parsed(said: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body).get("error", {})


@asynccontextmanager
async def serving(
    folder: Path, limits: ConnectionLimits = PATIENT, **settings: Any
) -> AsyncGenerator[Served]:
    app = create_app(Settings.load({}, data=folder / "data", gateway="openai", **settings))
    server = SignalFreeServer(uvicorn_config(app, 1, limits))
    with listen("127.0.0.1", 0) as listener:
        async with app.lifespan():
            running = asyncio.create_task(server.serve(sockets=[listener]))
            await until(lambda: server.started)
            yield Served(server, listener.getsockname())
            server.should_exit = True
            await running


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


# Headers

TOO_LARGE = {
    "a host": ASK[:-2].replace(b"localhost", b"a" * HUGE) + b"\r\n\r\n",
    "one header": ASK + b"X: " + b"a" * HUGE + b"\r\n\r\n",
    "an unfinished header": ASK + b"X: " + b"a" * HUGE,
    "an unfinished name": ASK + b"X" * HUGE,
    "many headers": ASK + b"X: a\r\n" * (HUGE // 6) + b"\r\n",
    "an address": ASK.replace(b"healthz", b"a" * HUGE) + b"\r\n",
    "a query": ASK.replace(b"healthz", b"healthz?" + b"a" * HUGE) + b"\r\n",
    "a little too much": ASK + b"Connection: close\r\nX: " + b"a" * MOST_HEADER_BYTES + b"\r\n\r\n",
}


@pytest.mark.parametrize("sent", TOO_LARGE.values(), ids=TOO_LARGE.keys())
async def test_headers_over_the_limit_are_refused_while_they_come(served: Served, sent: bytes):
    status, error = await served.response(sent)
    assert (status, error["code"]) == (431, "HEADERS_TOO_LARGE")
    assert error["details"] == {"most": MOST_HEADER_BYTES}
    assert (await served.response(ASK_AND_CLOSE))[0] == 200


async def test_of_huge_hosts_and_origins_nothing_is_kept(served: Served):
    huge = b"a" * 3_000_000
    tracemalloc.start()
    try:
        for number in range(4):
            for head in (ASK[:-11] + b"%d", ASK + b"Origin: http://%d"):
                assert (await served.response(head % number + huge + b"\r\n\r\n"))[0] == 431
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(huge)


async def test_headers_just_within_the_limit_are_read_in_whatever_pieces(served: Served):
    whole = ASK + b"Connection: close\r\nX: " + b"a" * (MOST_HEADER_BYTES - 200) + b"\r\n\r\n"
    assert (await served.response(whole))[0] == 200
    async with served.connect() as line:
        for start in range(0, len(whole), 10_000):
            await line.send(whole[start : start + 10_000])
        assert parsed(await line.all())[0] == 200


async def test_body_does_not_count_as_headers(served: Served):
    body = json.dumps({"name": "a", "systemPrompt": "x" * 200_000}).encode()
    head = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with served.connect() as line:
        await line.send((head + body) * 2 + ASK_AND_CLOSE)
        assert [await line.status() for _ in range(3)] == [422, 422, 200]  # a prompt has a limit of its own


async def test_endless_trailers_and_chunk_extensions_are_refused(served: Served):
    head = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for sent in (head + b"0\r\n" + b"X: a\r\n" * HUGE, head + b"1;" + b"a" * HUGE):
        async with served.connect() as line:
            await line.send(sent)
            assert await line.is_closed()
    assert (await served.response(ASK_AND_CLOSE))[0] == 200


async def test_few_requests_may_be_sent_ahead_and_not_many(served: Served):
    async with served.connect() as line:
        await line.send((ASK + b"\r\n") * 10 + ASK_AND_CLOSE)
        assert [await line.status() for _ in range(11)] == [200] * 11
    async with served.connect() as line:
        await line.send((ASK + b"\r\n") * 1000)
        assert await line.is_closed()


# Other protocols

UPGRADE = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
WEB_SOCKET = UPGRADE + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
# Headers that are too long, and the like: before, websockets answers nothing, and we a plain 400.
SAYS_WHY = int(version("websockets").partition(".")[0]) >= 17
NO_WEB_SOCKETS = {
    "a long header": (431, WEB_SOCKET + b"X: " + b"a" * 9000 + b"\r\n\r\n"),
    "many headers": (431, WEB_SOCKET + b"X: a\r\n" * 200 + b"\r\n"),
    "the limit": (431, WEB_SOCKET + b"X: " + b"a" * MOST_HEADER_BYTES + b"\r\n\r\n"),
    "a long address": (414, WEB_SOCKET.replace(b"/ws", b"/ws?" + b"a" * 9000) + b"\r\n"),
    "a body": (422, WEB_SOCKET + b"Content-Length: 4\r\n\r\nbody"),
    "an unfinished body": (422, WEB_SOCKET + b"Content-Length: 999\r\n\r\nbody"),
    "chunks": (422, WEB_SOCKET + b"Transfer-Encoding: chunked\r\n\r\n"),
    "another method": (405, WEB_SOCKET.replace(b"GET", b"POST") + b"\r\n"),
    "no key": (400, UPGRADE + b"\r\n"),
}


@pytest.mark.parametrize(("status", "sent"), NO_WEB_SOCKETS.values(), ids=NO_WEB_SOCKETS.keys())
async def test_what_cannot_become_a_web_socket_gets_a_response_and_is_closed(
    served: Served, status: int, sent: bytes
):
    async with served.connect() as line:
        await line.send(sent)
        assert int((await line.all()).split()[1]) == (status if SAYS_WHY or status == 422 else 400)
    await until(lambda: not served.server.server_state.connections)


async def test_body_is_never_taken_for_a_request(served: Served):
    """The parser passes over the body of what asks for another protocol, as `curl --http2` does."""
    head = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
    async with served.connect() as line:
        await line.send(head + b"Content-Length: %d\r\n\r\n" % len(ASK_AND_CLOSE))
        await line.send(ASK_AND_CLOSE)
        said = await line.all()
    assert said.count(b"HTTP/1.1") == 1
    assert parsed(said)[0] == 422
    async with served.connect() as line:
        await line.send(ASK + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        assert await line.status() == 200


# Time


async def test_connection_that_says_nothing_is_closed(tmp_path: Path):
    async with serving(tmp_path, replace(PATIENT, header_s=0.1)) as served, served.connect() as line:
        assert await line.all() == b""


async def test_slow_headers_are_refused_also_those_of_a_later_request(tmp_path: Path):
    async with serving(tmp_path, replace(PATIENT, header_s=0.1)) as served:
        for before in (b"", ASK + b"\r\n"):
            async with served.connect() as line:
                await line.send(before)
                if before:
                    assert await line.status() == 200
                await line.send(b"GET /heal")
                status, error = parsed(await line.all())
                assert (status, error["code"]) == (408, "REQUEST_TIMEOUT")


async def test_connection_that_waits_for_its_next_request_is_closed(tmp_path: Path):
    async with serving(tmp_path, replace(PATIENT, keep_alive_s=1)) as served, served.connect() as line:
        await line.send(ASK + b"\r\n")
        assert await line.status() == 200
        assert await line.all() == b""


async def test_slow_body_is_refused(tmp_path: Path):
    async with serving(tmp_path, body_timeout_s=0.1) as served, served.connect() as line:
        await line.send(b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        status, error = parsed(await line.all())
        assert (status, error["code"]) == (408, "REQUEST_TIMEOUT")


async def test_body_of_a_stranger_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("threadkeep.handling.bodies.DISCARD_S", 0.1)
    async with serving(tmp_path, jwt_secret=SECRET) as served:
        for path in (b"/api/agents", b"/api/chat", b"/api/agents/x/documents"):
            async with served.connect() as line:
                head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n" % path
                await line.send(head)
                status, error = parsed(await line.all())
                assert (status, error["code"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize(
    "sent",
    [ASK + b"X: ", b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"],
    ids=["headers", "a body"],
)
async def test_refused_sender_is_read_a_part_at_a_time(
    served: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.handling.discarding.PAUSE_S", PATIENCE_S)
    async with served.connect() as line:
        line.writer.write(sent + b"a" * 50_000_000)
        assert await line.status() in {413, 431}
        for _ in range(50):
            assert (await served.response(ASK_AND_CLOSE))[0] == 200
        unsent = line.writer.transport.get_write_buffer_size()
        assert unsent > 20_000_000
        line.writer.transport.abort()


async def test_refused_sender_of_megabytes_gets_to_read_why(served: Served):
    status, error = await served.response(ASK + b"X: " + b"a" * 5_000_000 + b"\r\n\r\n")
    assert (status, error["code"]) == (431, "HEADERS_TOO_LARGE")


# How many


async def test_newcomer_takes_the_place_of_the_connection_that_waits_longest(tmp_path: Path):
    async with serving(tmp_path, replace(PATIENT, most=2)) as served, served.connect() as first:
        await first.send(ASK + b"\r\n")
        assert await first.status() == 200
        async with served.connect() as second, served.connect() as third:
            assert await first.is_closed()
            for line in (second, third):
                await line.send(ASK + b"\r\n")
                assert await line.status() == 200


async def test_request_under_way_keeps_its_place_and_a_newcomer_is_refused(tmp_path: Path):
    body = b'{"name": "a"}'
    head = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)
    async with serving(tmp_path, replace(PATIENT, most=1)) as served, served.connect() as busy:
        await busy.send(head + b"Expect: 100-continue\r\n\r\n")
        assert await busy.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        status, error = await served.response(b"")
        assert (status, error["code"]) == (503, "TOO_MANY_CONNECTIONS")
        await busy.send(body)
        assert await busy.status() == 201
