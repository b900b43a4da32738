"""What reading a model's answer costs through our own transport, against httpx2's.

The model sends a piece when the one before it has been read, so that each comes by itself, however busy the
machine is; counted is the processor time of the reading thread alone.
"""

import re
import socket
import socketserver
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, cast

import httpx2

from bench.measure import Effort, compare
from bench.table import Aim, Line
from threadkeep.gateways.anthropic import ANTHROPIC
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.transport import StreamTransport
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock, TextDelta
from threadkeep.testing.script import Say
from threadkeep.testing.wires import open_wire

PIECES = 1_000
REQUEST = ModelRequest("scripted", "", (ModelMessage("user", (TextBlock("Hello"),)),))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

Read = Callable[[str, httpx2.AsyncBaseTransport], AsyncIterator[object]]


async def measure(effort: Effort) -> list[Line]:
    """Both transports in turns: the bytes alone, and the answer as the gateway understands it."""
    return [
        await _compare("reading a piece of an answer", _bytes, effort),
        await _compare("reading and understanding it", _texts, effort),
    ]


async def _compare(name: str, read: Read, effort: Effort) -> Line:
    theirs, mine = httpx2.AsyncHTTPTransport(), StreamTransport()
    floor: list[float] = []
    ours: list[float] = []
    with _Model().serve() as model:
        for _ in range(1 + effort.read_rounds // 3):
            floor.append(await _cost(model, theirs, read))
            ours.append(await _cost(model, mine, read))
        await theirs.aclose()
        await mine.aclose()
    # The first round warms up.
    return Line(f"{name}, CPU", compare(floor[1:], ours[1:]), Aim("≤", 0.5))


async def _cost(model: "_Model", transport: httpx2.AsyncBaseTransport, read: Read) -> float:
    """Microseconds of this thread's processor time a piece."""
    before, count = time.thread_time_ns(), 0
    async for _ in read(model.url, transport):
        model.go_on()
        count += 1
    assert count >= PIECES
    return (time.thread_time_ns() - before) / 1_000 / PIECES


async def _bytes(url: str, transport: httpx2.AsyncBaseTransport) -> AsyncIterator[bytes]:
    request = httpx2.Request("POST", f"{url}/v1/messages", content=b"{}")
    response = await transport.handle_async_request(request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for piece in response.stream:
        yield piece
    await response.aclose()


async def _texts(url: str, transport: httpx2.AsyncBaseTransport) -> AsyncIterator[TextDelta]:
    endpoint = Endpoint(url=url)
    async for event in ProviderGateway(ANTHROPIC, endpoint, transport=transport).stream(REQUEST):
        if isinstance(event, TextDelta):
            yield event


class _Model:
    """A server in a thread of its own, with one answer for every request."""

    def __init__(self) -> None:
        self.url = ""
        self._chunks = [b"%x\r\n%b\r\n" % (len(data), data) for data in _answer()]
        self._chunks[-1] += b"0\r\n\r\n"
        self._may_go_on: SimpleQueue[None] = SimpleQueue()

    def go_on(self) -> None:
        """A piece has been read: the next may come."""
        self._may_go_on.put(None)

    @contextmanager
    def serve(self) -> Generator["_Model"]:
        """Listens while the block runs."""
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), cast("Any", self._answer_all)) as server:
            server.daemon_threads = True
            self.url = f"http://127.0.0.1:{server.server_address[1]}"
            listening = threading.Thread(target=server.serve_forever)
            listening.start()
            yield self
            server.shutdown()
            listening.join()

    def _answer_all(self, caller: Any, address: object, server: object) -> None:
        """Answers a connection's requests, as long as it lasts."""
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while _read_request(caller):
            self._answer(caller)

    def _answer(self, caller: socket.socket) -> None:
        self._forget()
        first, *others = self._chunks
        caller.sendall(HEAD + first)
        for chunk in others:
            self._may_go_on.get()
            caller.sendall(chunk)

    def _forget(self) -> None:
        try:
            while True:
                self._may_go_on.get_nowait()
        except Empty:
            pass


def _read_request(caller: socket.socket) -> bool:
    """Reads a request to its end; false where there is none any more."""
    head = b""
    while not (parts := head.partition(b"\r\n\r\n"))[1]:
        if not (data := caller.recv(65_536)):
            return False
        head += data
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    missing = int(length[1]) - len(parts[2]) if length else 0
    while missing > 0:
        missing -= len(caller.recv(65_536))
    return True


def _answer() -> Iterator[bytes]:
    """An answer of so many pieces, as Anthropic sends it."""
    reply = [Say(f"word {number} ") for number in range(PIECES)]
    wire = open_wire("anthropic", {"model": "scripted"}, 1, reply)
    pieces = map(wire.write, reply)
    yield wire.begin() + next(pieces)
    yield from chain(pieces, [wire.end()])
