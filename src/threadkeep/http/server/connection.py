"""One connection: how much it may send before the application reads it, and how long it may take."""

import asyncio
import contextlib
import resource
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from threadkeep.domain.errors import InvalidRequest, RequestTimeout, ThreadkeepError, TooManyConnections
from threadkeep.handling.bodies import has_body
from threadkeep.handling.discarding import DISCARD_S, Discarding
from threadkeep.handling.errors import error_response
from threadkeep.http.edge import MOST_HEADER_BYTES, headers_too_large, new_request_id, our_headers
from threadkeep.wire.inside import CONNECTION

# The parser gets one part at a time: it buffers an unfinished header, which we see only after a part.
PART_BYTES = 16 * 1024
MOST_PIPELINED = 16

# How many connections beyond the limit may stay to read why they are refused.
MOST_LINGERING = 100

# Files that the process opens besides connections: databases, programs, documents.
OTHER_FILES = 256


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What the operator allows."""

    most: int = 10_000
    header_s: float = 10
    keep_alive_s: int = 30


class Connections:
    """All connections of a server; those that wait for a request yield to new ones."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.waiting: dict[HttpConnection, None] = {}
        """In the order in which they started to wait."""
        self.discarding = Discarding()
        self._most = min(limits.most, _allowed_files(limits.most + OTHER_FILES) - OTHER_FILES)

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """The factory that makes a `HttpConnection` for each incoming one."""
        return cast("type[asyncio.Protocol]", partial(HttpConnection, self))

    def has_room(self, count: int) -> bool:
        """Whether this many connections may be open; closes the one that has waited longest if necessary."""
        if count <= self._most:
            return True
        longest = next(iter(self.waiting), None)
        if longest is None:
            return False
        del self.waiting[longest]
        longest.transport.abort()
        return True

    def may_linger(self, count: int) -> bool:
        """Whether a refused connection may stay until it has read why."""
        return count <= self._most + MOST_LINGERING


class HttpConnection(HttpToolsProtocol):
    """Limits what arrives before the application is called, which uvicorn doesn't."""

    # An object with 30 attributes or more doesn't share their names with others of its class, which costs
    # 1.3 kB; uvicorn has nearly as many.
    __slots__ = ("_all", "_is_refused", "_is_upgraded", "_reads_head", "_timer", "_unfinished_bytes")

    def __init__(
        self,
        all_: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = all_
        self._unfinished_bytes = 0
        """The bytes since the parser's last complete result."""
        self._reads_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._is_refused = False
        self._is_upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        count = len(self.connections)
        if not self._all.has_room(count):
            self._refuse(TooManyConnections("This node has reached its connection limit. Try again."))
            if not self._all.may_linger(count):
                transport.abort()
            return
        self._all.waiting[self] = None
        self._timer = self.loop.call_later(self._all.limits.header_s, self._end_wait)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.waiting.pop(self, None)
        self._cancel_timer()
        if self._is_refused:
            self._all.discarding.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._pause()
            return
        for start in range(0, len(data), PART_BYTES):
            part = data[start : start + PART_BYTES]
            self._unfinished_bytes += len(part)
            super().data_received(part)
            if self._is_upgraded or self._is_refused or self.transport.is_closing():
                return
            if self._unfinished_bytes > MOST_HEADER_BYTES:
                self._refuse(headers_too_large())
                self._pause()
                return
        if self._reads_head and self._unfinished_bytes and self._timer is None:
            self._timer = self.loop.call_later(self._all.limits.header_s, self._end_wait)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: {}}  # pyright: ignore[reportArgumentType]

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return
        if self._hides_its_body():
            self._refuse(InvalidRequest("A request with a body can't switch protocols (`Upgrade`)."))
            return
        self._cancel_timer()
        self._all.waiting.pop(self, None)
        self._unfinished_bytes = 0
        self._reads_head = False
        super().on_headers_complete()
        if len(self.pipeline) > MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_refused:
            return
        self._unfinished_bytes = 0
        self._reads_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        if self._reads_head:
            self._all.waiting[self] = None
        else:
            self.transport.close()  # the rest of this body stays unread, so no request can follow it

    def handle_websocket_upgrade(self) -> None:
        self._is_upgraded = True
        super().handle_websocket_upgrade()

    def _hides_its_body(self) -> bool:
        """Whether the parser skips the body, whose next bytes would then look like a request."""
        asks_for_another = cast("bool", cast("Any", self.parser).should_upgrade())
        return asks_for_another and has_body({}, dict(self.headers))

    def _end_wait(self) -> None:
        """The headers haven't arrived in time."""
        self._timer = None
        if self._unfinished_bytes:
            self._refuse(RequestTimeout("The request headers didn't arrive in time. Send the request again."))
        else:
            self.transport.close()

    def _refuse(self, error: ThreadkeepError) -> None:
        self._is_refused = True
        self._all.discarding.begin()
        self._all.waiting.pop(self, None)
        self._cancel_timer()
        self.headers, self.parser = [], None  # and with them the partial request
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:  # a response is being written
            self.transport.abort()
            return
        self.transport.write(_error_bytes(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(DISCARD_S, self.transport.abort)

    def _pause(self) -> None:
        """Leaves a refused sender alone for a while."""
        if not self.transport.is_closing():
            self.transport.pause_reading()
            self.loop.call_later(self._all.discarding.pause_s, self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _error_bytes(error: ThreadkeepError) -> bytes:
    """An error as bytes on the wire, without an application."""
    request_id = new_request_id()
    response = error_response(error, request_id=request_id)
    headers = [*response.raw_headers, *our_headers(request_id), (b"connection", b"close")]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body)


def _allowed_files(wanted: int) -> int:
    """How many files the process may open, after requesting this many from the system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):  # some systems grant less than they report
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
