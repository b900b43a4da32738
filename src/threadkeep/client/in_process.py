"""Calls an ASGI application in this process as if over HTTP, including its streams."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx2

from threadkeep.tasks import end_tasks
from threadkeep.wire.inside import INSIDE

Message = MutableMapping[str, Any]
AsgiApplication = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application; defined here, so that a client needs no web framework."""


class InProcessTransport(httpx2.AsyncBaseTransport):
    """A transport without a network. httpx2's own returns a response only when it is complete."""

    def __init__(self, app: AsgiApplication) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Runs the application until its response begins; the rest is read from the response's stream."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        response = _Response(request.stream)
        response.begin(self._app, _scope(request))
        try:
            head = await response.messages.get()
        except BaseException:  # a cancelled caller hangs up
            await response.aclose()
            raise
        if head is None:
            await response.aclose()
            raise httpx2.RemoteProtocolError(
                "The application finished without sending a response.", request=request
            )
        return httpx2.Response(head["status"], headers=head["headers"], stream=response)


class _Response(httpx2.AsyncByteStream):
    """The response to one request, while the application makes it."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self.messages: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=1)  # at the reader's pace
        self._body = aiter(body)
        self._is_sent = False
        self._hung_up = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def begin(self, app: AsgiApplication, scope: dict[str, Any]) -> None:
        """Starts the application."""
        self._running = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: AsgiApplication, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self.messages.put)
        finally:
            await self.messages.put(None)

    async def _receive(self) -> Message:
        if not self._is_sent:
            piece = await anext(self._body, None)
            self._is_sent = piece is None
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.messages.get()) is not None:
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return

    async def aclose(self) -> None:
        """Hangs up; the application can no longer respond."""
        self._hung_up.set()
        if self._running is not None:
            await end_tasks(self._running)


def _scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "extensions": {INSIDE: {}},
    }
