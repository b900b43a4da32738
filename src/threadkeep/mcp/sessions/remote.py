"""MCP over streamable HTTP, to someone else's server."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from threadkeep.mcp.link import Link, LinkBroken, Streams, causes
from threadkeep.mcp.sessions.http_client import http_client
from threadkeep.mcp.sessions.incoming import IncomingMessages
from threadkeep.networks import Network
from threadkeep.ports.tools import MOST_RESULT_BYTES


class RemoteLink(Link):
    """A server at an address."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        incoming: IncomingMessages,
        *,
        allow_private: bool,
        denied: Sequence[Network] = (),
    ) -> None:
        self._url = url
        self._headers = headers
        self._incoming = incoming
        self._allow_private = allow_private
        self._denied = denied
        self._refusal: int | None = None

    @asynccontextmanager
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[Streams]:
        """Connects to the server while the block runs. The other side never ends such a link."""
        client = http_client(
            self._headers, self._incoming.shrink, allow_private=self._allow_private, denied=self._denied
        )
        client.event_hooks = {"response": [self._take_note]}
        try:
            async with (
                client,
                streamable_http_client(
                    self._url, http_client=client, max_sse_event_size=MOST_RESULT_BYTES
                ) as streams,
            ):
                yield streams
        except Exception as exc:
            for cause in causes(exc):
                if isinstance(cause, httpx2.HTTPError):
                    raise LinkBroken(f"It can't be reached: {str(cause) or type(cause).__name__}") from exc
                if isinstance(cause, MCPError) and self._refusal is not None:
                    raise LinkBroken(f"It returned HTTP status {self._refusal}.") from exc
            raise

    async def _take_note(self, response: httpx2.Response) -> None:
        """Keeps the status of a refusal, which the SDK does not report."""
        self._refusal = response.status_code if response.status_code >= 400 else None
