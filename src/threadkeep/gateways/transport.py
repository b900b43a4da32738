"""HTTP/1.1 for responses that arrive in many small pieces.

httpx2's own transport takes about five times the CPU for each piece (`python -m bench --only reading`), which
would be most of a turn's cost. It is still used with a proxy.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from typing import cast

import httptools
import httpx2

from threadkeep.gateways.addresses import Resolve, connect_first, resolve
from threadkeep.tls import tls_context

MOST_IDLE = 100
IDLE_S = 30.0
MOST_HEADER_BYTES = 64 * 1024
MOST_WAITING_BYTES = 256 * 1024  # beyond this the sender is held back until the reader catches up

_Origin = tuple[str, str, int]


class StreamTransport(httpx2.AsyncBaseTransport):
    """Opens connections and keeps those that can be reused."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, resolve: Resolve = resolve) -> None:
        self._tls = tls
        self._resolve = resolve
        self._idle: dict[_Origin, list[_ProviderConnection]] = {}
        self._busy: set[_ProviderConnection] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; returns the response once its head has arrived."""
        content = await request.aread()
        timeout: dict[str, float | None] = request.extensions.get("timeout", {})
        url = request.url
        origin = url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
        connection = self._take(origin) or await self._connect(origin, timeout.get("connect"))
        self._busy.add(connection)

        def release() -> None:
            self._busy.discard(connection)
            self._keep(origin, connection)

        try:
            status, headers = await connection.send(_encode(request) + content, timeout.get("read"))
        except BaseException:
            release()
            raise
        return httpx2.Response(status, headers=headers, stream=_Body(connection, release))

    async def aclose(self) -> None:
        """Closes every connection."""
        for connection in [*self._busy, *(one for idle in self._idle.values() for one in idle)]:
            connection.abort()
        self._idle.clear()

    def _take(self, origin: _Origin) -> "_ProviderConnection | None":
        loop = asyncio.get_running_loop()
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()
            if connection.is_reusable(loop):
                return connection
            connection.abort()
        return None

    def _keep(self, origin: _Origin, connection: "_ProviderConnection") -> None:
        idle = self._idle.setdefault(origin, [])
        if connection.rest() and len(idle) < MOST_IDLE:
            idle.append(connection)
        else:
            connection.abort()

    async def _connect(self, origin: _Origin, timeout_s: float | None) -> "_ProviderConnection":
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        tls = (self._tls or tls_context()) if scheme == "https" else None
        try:
            async with asyncio.timeout(timeout_s):
                sock = await connect_first(await self._resolve(host, port))
                _, connection = await loop.create_connection(
                    lambda: _ProviderConnection(loop),
                    sock=sock,
                    ssl=tls,
                    server_hostname=host if tls else None,
                )
        except TimeoutError as exc:
            raise httpx2.ConnectTimeout("Connecting timed out.") from exc
        except (OSError, UnicodeError) as exc:
            raise httpx2.ConnectError(str(exc)) from exc
        return connection


def _encode(request: httpx2.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    for name, value in request.headers.raw:
        if b"\r" in value or b"\n" in value or b"\0" in value:
            raise httpx2.LocalProtocolError(
                f"The value of {name!r} contains characters that HTTP can't send."
            )
        lines.append(b"%s: %s" % (name, value))
    return b"\r\n".join((*lines, b"", b""))


class _Body(httpx2.AsyncByteStream):
    """The rest of a response, as it arrives."""

    def __init__(self, connection: "_ProviderConnection", release: Callable[[], None]) -> None:
        self._connection = connection
        self._release = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._connection.read():
            yield piece

    async def aclose(self) -> None:
        self._release()


class _ProviderConnection(asyncio.Protocol):
    """One connection, carrying one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waiting_since = 0.0
        self._silence_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._other_bytes = 0  # received since the last piece of the body
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0
        self._is_paused = False
        self._is_complete = False
        self._can_be_kept = False
        self._error: httpx2.TransportError | None = None

    async def send(self, data: bytes, silence_s: float | None) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Sends a request; returns the status and headers of the response."""
        self._begin()
        assert self._transport
        self._transport.write(data)
        self._silence_s = silence_s
        self._watch()
        while not self._status:
            await self._wait()
        return self._status, self._headers

    async def read(self) -> bytes:
        """What has arrived of the body since; empty at its end."""
        while not self._pieces:
            if self._is_complete:
                return b""
            await self._wait()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting_bytes = 0
        if self._is_paused and self._transport:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def is_reusable(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether another request can be sent on it."""
        return self._loop is loop and self._transport is not None and loop.time() - self._idle_since < IDLE_S

    def rest(self) -> bool:
        """Ends the request; returns whether the connection can be kept for another."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._idle_since = self._loop.time()
        return self._is_complete and self._can_be_kept and self._transport is not None

    def abort(self) -> None:
        """Closes it, whatever is in progress."""
        transport, self._transport = self._transport, None
        if transport is not None and not self._loop.is_closed():
            transport.abort()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiting_since = self._loop.time()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: httpx2.TransportError) -> None:
        if self._error is None and not self._is_complete:
            self._error = error
        self._wake()
        self.abort()

    def _watch(self) -> None:
        # One timer that checks now and then, instead of one for each piece.
        if self._silence_s is None:
            return
        now = self._loop.time()
        until = (self._waiting_since if self._waiter else now) + self._silence_s
        if now >= until:
            self._fail(httpx2.ReadTimeout("No data arrived in time."))
        else:
            self._timer = self._loop.call_at(until, self._watch)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._is_complete:
            self.abort()  # unsolicited
            return
        self._other_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            self._fail(httpx2.RemoteProtocolError(f"The response isn't valid HTTP: {type(exc).__name__}."))
        # The parser joins the pieces of a header line and reports it only at its end.
        if self._other_bytes > MOST_HEADER_BYTES:
            self._fail(httpx2.RemoteProtocolError("The response isn't valid HTTP: too many headers."))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_complete and self._status and exc is None and self._ends_with_connection():
            self._is_complete = True
        self._transport = None
        self._fail(httpx2.RemoteProtocolError("The connection closed before the response was complete."))

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self._headers}
        return not names & {b"content-length", b"transfer-encoding"}

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise ValueError("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = []  # informational; the response is still to come
        else:
            self._status = status

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._other_bytes = 0
        self._waiting_bytes += len(body)
        if self._waiting_bytes > MOST_WAITING_BYTES and not self._is_paused and self._transport:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._status:
            self._is_complete = True
            self._can_be_kept = self._parser.should_keep_alive()
