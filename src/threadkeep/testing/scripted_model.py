"""A model that follows a test's script: a real HTTP server with the providers' three APIs.

    with ScriptedModel([Say("Hel"), Say("lo")], [UseTool("add", {"a": 1})]) as model:
        gateway = ProviderGateway(ANTHROPIC, Endpoint(url=model.url, model="scripted"))
        …
        model.requests[0].body["messages"]

Each request gets the next reply; when none is left, `otherwise` answers. A request that the real provider
would refuse gets its 400 and is in `model.refused`. In a separate process:

    python -m threadkeep.testing --port 0 --pieces 100 --rate 20    # prints its address first
"""

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

import msgspec

from threadkeep.testing.provider_rules import (
    check_anthropic_request,
    check_openai_request,
    check_responses_request,
)
from threadkeep.testing.script import (
    CutOff,
    Hang,
    Pause,
    Raw,
    Reply,
    Reset,
    Say,
    SayTime,
    Status,
    Step,
    Wait,
)
from threadkeep.testing.waiting import PATIENCE_S, until
from threadkeep.testing.wires import Wire, WireName, error_body, open_wire

HOST = "127.0.0.1"
ROUNDS_TO_ACCEPT = 5
DEFAULT_REPLY: Reply = (Say("OK."),)

# How a request ended: answered completely, cut off by the script, or by a client that disconnected.
Outcome = Literal["finished", "refused", "broken", "disconnected"]

_WIRES: Mapping[str, WireName] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/v1/responses": "responses",
}
_MODELS = "/v1/models"
_CHECKS: Mapping[WireName, Callable[[object], list[str]]] = {
    "anthropic": check_anthropic_request,
    "openai": check_openai_request,
    "responses": check_responses_request,
}


@dataclass
class Recorded:
    """A request, and its outcome."""

    number: int
    path: str
    headers: Mapping[str, str]
    content: bytes
    body: dict[str, Any]
    wire: WireName
    problems: Sequence[str]
    sent_text: list[str] = field(default_factory=list[str])
    sent_bytes: bytearray = field(default_factory=bytearray)
    _over: "Future[Outcome]" = field(default_factory=Future["Outcome"], repr=False)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, if it has."""
        return self._over.result() if self._over.done() else None

    async def until_over(self) -> Outcome:
        """Waits until it has ended, however it did."""
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.shield(asyncio.wrap_future(self._over))

    def end(self, outcome: Outcome) -> None:
        """For the server; the first outcome counts."""
        if not self._over.done():
            self._over.set_result(outcome)


class ScriptedModel:
    """The server, in a separate thread for the duration of the `with` block."""

    def __init__(
        self,
        *replies: Reply,
        otherwise: Reply | Callable[[Recorded], Reply] = DEFAULT_REPLY,
        port: int = 0,
        records: bool = True,
        models: Sequence[str] | None = ("scripted",),
        key: str | None = None,
    ) -> None:
        """`models` are those that it lists; None: it lists none. `key` is the only one that it accepts."""
        self.requests: list[Recorded] = []
        self.paths: list[str] = []
        self.connections = 0
        self.otherwise = otherwise
        self.models = models
        self.key = key
        self._replies = deque(replies)
        self._port = port
        self._records = records
        self._count = 0
        self._open: set[_ClientConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: asyncio.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The server's URL, for all three APIs."""
        return f"http://{HOST}:{self._port}"

    @property
    def is_running(self) -> bool:
        """Whether it is inside its `with` block."""
        return self._loop is not None and not self._loop.is_closed()

    @property
    def refused(self) -> list[Recorded]:
        """Requests that the real provider would have rejected."""
        return [request for request in self.requests if request.problems]

    def script(self, *replies: Reply) -> None:
        """Adds replies for the next requests."""
        self._replies.extend(replies)

    def skip(self, count: int) -> None:
        """Drops the next replies of the script, as many as there are."""
        for _ in range(min(count, len(self._replies))):
            self._replies.popleft()

    async def until_requests(self, count: int) -> list[Recorded]:
        """Waits until this many requests have arrived."""
        await until(lambda: len(self.requests) >= count)
        return self.requests

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """Refuses new connections inside the block; open ones stay open."""
        self._call(self._close_port)
        try:
            yield
        finally:
            self._call(self.listen)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-model", daemon=True)
        self._thread.start()
        self._call(self.listen)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop
        assert self._thread
        self._call(self.shut_down)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def listen(self) -> None:
        """Opens the port, in the running loop."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _ClientConnection(self), HOST, self._port, backlog=2048
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def shut_down(self) -> None:
        """Closes the port and every connection."""
        await self._close_port()
        await asyncio.gather(*(connection.close() for connection in list(self._open)))

    async def _close_port(self) -> None:
        assert self._server
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        # A connection that was accepted just now takes some rounds to open; a closed server would lose it.
        for _ in range(ROUNDS_TO_ACCEPT):
            await asyncio.sleep(0)
        self._server.close()
        await asyncio.sleep(0)

    def _call(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        assert self._loop
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_S)

    # For the connections.

    def opened(self, connection: "_ClientConnection") -> None:
        """A client has connected."""
        self.connections += 1
        self._open.add(connection)

    def closed(self, connection: "_ClientConnection") -> None:
        """A client has disconnected."""
        self._open.discard(connection)

    def record(self, path: str, headers: Mapping[str, str], content: bytes, wire: WireName) -> Recorded:
        """Records a request."""
        self._count += 1
        try:
            body: object = msgspec.json.decode(content)
            problems = _CHECKS[wire](body) if self._records else []
        except msgspec.DecodeError:
            body, problems = {}, ["the body isn't JSON"]
        fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        if not problems and not fields.get("stream"):
            problems = ["stream: this model only streams"]
        request = Recorded(self._count, path, headers, content, fields, wire, problems)
        if self._records:
            self.requests.append(request)
        return request

    def reply_to(self, request: Recorded) -> Reply:
        """The script's reply to a request."""
        if request.problems:
            return [Status(400, "; ".join(request.problems))]
        if not self.accepts(request.headers):
            return [Status(401, "Incorrect API key provided.")]
        if self._replies:
            return self._replies.popleft()
        return self.otherwise(request) if callable(self.otherwise) else self.otherwise

    def accepts(self, headers: Mapping[str, str]) -> bool:
        """Whether a request has the right key, in the manner of either provider."""
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return self.key is None or given == self.key

    def list_models(self, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The response to a request for its models."""
        if not self.accepts(headers):
            return 401, error_body("openai", 401, "Incorrect API key provided.")
        if self.models is None:
            return 404, b'{"error": {"message": "Not found."}}'
        return 200, msgspec.json.encode({"object": "list", "data": [{"id": it} for it in self.models]})

    def sent(self, request: Recorded, data: bytes, text: str) -> None:
        """Records sent data."""
        if self._records:
            request.sent_bytes += data
            if text:
                request.sent_text.append(text)


class _ClientConnection(asyncio.Protocol):
    """One client: reads its requests and plays the replies."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self._buffer = bytearray()
        self._has_data = asyncio.Event()
        self._can_write = asyncio.Event()
        self._can_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._model.opened(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._has_data.set()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._model.closed(self)
        self._task.cancel()

    async def close(self) -> None:
        """Ends it, even in the middle of a reply."""
        self._transport.abort()
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _serve(self) -> None:
        while True:
            head = (await self._take_until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = head[0].split(" ")[1]
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
            }
            content = await self._take(int(headers.get("content-length", "0")))
            self._model.paths.append(path)
            if path.partition("?")[0] == _MODELS:
                self._respond(*self._model.list_models(headers))
                continue
            if path not in _WIRES:
                self._respond(404, b'{"error": {"message": "Not found."}}')
                continue
            request = self._model.record(path, headers, content, _WIRES[path])
            try:
                request.end(await self._play(request, self._model.reply_to(request)))
            except asyncio.CancelledError:
                request.end("disconnected")
                raise

    async def _take_until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            await self._more()
        taken = bytes(self._buffer[: self._buffer.index(mark)])
        del self._buffer[: len(taken) + len(mark)]
        return taken

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await self._more()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _more(self) -> None:
        self._has_data.clear()
        await self._has_data.wait()

    async def _play(self, request: Recorded, reply: Reply) -> Outcome:
        stream = _Stream(self._model, request, self._transport, reply)
        for step in reply:
            match step:
                case Status():
                    message = step.message
                    body = (
                        step.body if step.body is not None else error_body(request.wire, step.status, message)
                    )
                    after = {"retry-after": step.retry_after} if step.retry_after is not None else {}
                    self._respond(step.status, body, {**after, **step.headers})
                    return "refused"
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Wait(gate):
                    await gate.pass_through()
                case Hang():
                    await asyncio.Event().wait()
                case Reset():
                    await asyncio.sleep(0.02)  # lets the sent bytes arrive
                    self._reset()
                    return "broken"
                case CutOff():
                    stream.close()
                    return "broken"
                case SayTime():
                    stream.write(Say(f"{time.monotonic():.6f} "))
                case _:
                    stream.write(step)
            if not self._can_write.is_set():
                await self._can_write.wait()
        stream.finish()
        return "finished"

    def _respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._transport.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + body)

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()


class _Stream:
    """The response of one reply: its head with the first event, each event a chunk."""

    _HEAD = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
        b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
    )

    def __init__(
        self, model: ScriptedModel, request: Recorded, transport: asyncio.Transport, reply: Reply
    ) -> None:
        self._model = model
        self._request = request
        self._transport = transport
        self._wire: Wire = open_wire(request.wire, request.body, request.number, reply)
        self._beginning = self._wire.begin()
        self._has_head = False
        self._has_begun = False

    def write(self, step: Step) -> None:
        data = self._wire.write(step)
        if isinstance(step, Raw):
            self._send(data)  # as is, without the provider's beginning
        elif data:
            self._begin()
            self._send(data, step.text if isinstance(step, Say) else "")

    def finish(self) -> None:
        if not self._has_head:
            self._begin()
        if self._has_begun:
            self._send(self._wire.end())
        self.close()

    def close(self) -> None:
        self._begin_response()
        self._transport.write(b"0\r\n\r\n")

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._send(self._beginning)

    def _begin_response(self) -> None:
        if not self._has_head:
            self._has_head = True
            self._transport.write(self._HEAD)

    def _send(self, data: bytes, text: str = "") -> None:
        self._begin_response()
        if data:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
            self._model.sent(self._request, data, text)


@contextlib.contextmanager
def closed_port() -> Generator[str]:
    """An address where nothing listens, or will."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        yield f"http://{HOST}:{held.getsockname()[1]}"
