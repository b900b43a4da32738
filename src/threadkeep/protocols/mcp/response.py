"""One request of an MCP client and its response, by the SDK's own transport.

Nothing is kept between requests: each has a session manager of its own, whose tasks end with the response. So
nothing must be started or stopped with the server, and any node answers any request.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import SLOWEST_READ_S, LastingResponse, broken_off
from threadkeep.protocols.mcp.server import SERVER, remember_request

log = logging.getLogger("threadkeep.mcp")

# They report every request as if a server had started.
logging.getLogger("mcp.server.streamable_http_manager").setLevel(logging.WARNING)
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)


class McpResponse(LastingResponse):
    """The response to a message that has passed sign-in and limits."""

    def __init__(self, request: RequestContext, message: bytes) -> None:
        super().__init__()
        self._request = request
        self._message = message
        self._is_cut = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        remember_request(scope, self._request)
        # The edge has checked `Host` and `Origin`, and the route the body's size.
        manager = StreamableHTTPSessionManager(
            SERVER, stateless=True, max_request_body_size=max(1, len(self._message))
        )
        async with anyio.create_task_group() as tasks, manager.run():
            tasks.start_soon(self._watch, tasks.cancel_scope)
            sending = self._in_time(send, tasks.cancel_scope)
            await manager.handle_request(scope, self._again(receive), sending)
            tasks.cancel_scope.cancel()
        if self._is_cut:
            broken_off.set(True)

    async def _watch(self, response: anyio.CancelScope) -> None:
        """Cuts the response soon after its user may no longer read it."""
        while True:
            await anyio.sleep(self.check_every_s)
            if not await self.is_allowed():
                log.info("closing the response to a user who is no longer signed in")
                self._cut(response)

    def _in_time(self, send: Send, response: anyio.CancelScope) -> Callable[[Message], Awaitable[None]]:
        """Sends to a client that reads; cuts the response to one that has stopped."""

        async def send_in_time(message: Message) -> None:
            with anyio.move_on_after(SLOWEST_READ_S) as sending:
                await send(message)
            if sending.cancelled_caught:
                log.info("dropping an MCP client that stopped reading")
                self._cut(response)

        return send_in_time

    def _cut(self, response: anyio.CancelScope) -> None:
        self._is_cut = True
        response.cancel()

    def _again(self, receive: Receive) -> Receive:
        """Gives the message, which has been read, once more; then what the connection says."""
        message: bytes | None = self._message

        async def receive_again() -> Message:
            nonlocal message
            if message is None:
                return await receive()
            body, message = message, None
            return {"type": "http.request", "body": body, "more_body": False}

        return receive_again
