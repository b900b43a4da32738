"""MCP over streamable HTTP, to a server of somebody else."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from threadkeep.mcp.addresses import PublicTransport
from threadkeep.mcp.lines import MESSAGE_COSTS, MOST_LINE_BYTES, Pace
from threadkeep.mcp.link import Link, LinkBroken, Streams, causes

# No limit on reading: how long a call may take is decided where it is made.
_TIMEOUT = httpx2.Timeout(10, read=None)
_FAREWELL = {"connect": 1.0, "read": 1.0, "write": 1.0, "pool": 1.0}


class RemoteLink(Link):
    """A server at an address."""

    def __init__(self, url: str, headers: Mapping[str, str], *, allow_private: bool) -> None:
        self._url = url
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._allow_private = allow_private

    @asynccontextmanager
    async def open(self, on_end: Callable[[], None]) -> AsyncGenerator[Streams]:
        """Speaks with the server while the block runs. Such a link is not ended from the other side."""
        transport = _Bounded(httpx2.AsyncHTTPTransport() if self._allow_private else PublicTransport())
        client = httpx2.AsyncClient(headers=self._headers, timeout=_TIMEOUT, transport=transport)
        try:
            async with (
                client,
                streamable_http_client(
                    self._url, http_client=client, max_sse_event_size=MOST_LINE_BYTES
                ) as streams,
            ):
                yield streams
        except Exception as exc:
            for cause in causes(exc):
                if isinstance(cause, httpx2.HTTPError):
                    raise LinkBroken(f"It cannot be reached: {str(cause) or type(cause).__name__}") from exc
                if isinstance(cause, MCPError) and transport.refusal is not None:
                    raise LinkBroken(f"It answers with HTTP status {transport.refusal}.") from exc
            raise


class _Bounded(httpx2.AsyncBaseTransport):
    """Bounds what a server can send us: in size where it is one answer, in speed where it is a stream."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self.refusal: int | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; what comes back is read within bounds."""
        if request.method == "DELETE":  # the farewell: a server that does not care must not hold us up
            request.extensions = {**request.extensions, "timeout": _FAREWELL}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("The answer is compressed, which was not asked for.")
        self.refusal = response.status_code if response.status_code >= 400 else None
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _Paced(response.stream) if is_stream else _Short(response.stream)
        return response

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


class _Paced(httpx2.AsyncByteStream):
    """A stream of events, not faster than we care to read."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pace = Pace()
        async for chunk in self._inner:
            await pace.spend(len(chunk) + MESSAGE_COSTS * chunk.count(b"\n\n"))
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Short(httpx2.AsyncByteStream):
    """One answer, not longer than we care to keep."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._inner:
            length += len(chunk)
            if length > MOST_LINE_BYTES:
                raise httpx2.StreamError(f"The message has more than {MOST_LINE_BYTES} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
