"""The HTTP client for a remote server: it stays on the Internet, and takes only so much."""

from collections.abc import AsyncIterator, Mapping

import httpx2

from threadkeep.mcp.addresses import public_addresses
from threadkeep.mcp.lines import MESSAGE_COSTS, MOST_LINE_BYTES, Pace

# No limit on reading: how long a call may take is decided where it is made.
TIMEOUT = httpx2.Timeout(10, read=None)

_FAREWELL = {"connect": 1.0, "read": 1.0, "write": 1.0, "pool": 1.0}


def http_client(
    headers: Mapping[str, str], *, allow_private: bool, timeout: httpx2.Timeout = TIMEOUT
) -> httpx2.AsyncClient:
    """A client for one remote server that does not leave the Internet, unless the operator allows it."""
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=timeout,
        transport=_Bounded(httpx2.AsyncHTTPTransport() if allow_private else _PublicTransport()),
    )


class _PublicTransport(httpx2.AsyncBaseTransport):
    """Connects to the very address that was found to be public; the name stays for TLS and `Host`."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request to the first address of its host that can be reached."""
        url = request.url
        try:
            addresses = await public_addresses(url.host, url.port or (443 if url.scheme == "https" else 80))
        except (OSError, UnicodeError) as exc:
            raise httpx2.ConnectError(f"Cannot connect to {url.host}: {exc}", request=request) from exc
        for address in addresses[:-1]:
            try:
                return await self._send(request, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send(request, addresses[-1])

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        return await self._inner.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
        )


class _Bounded(httpx2.AsyncBaseTransport):
    """Bounds what a server can send us: in size where it is one answer, in speed where it is a stream."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; what comes back is read within bounds."""
        if request.method == "DELETE":  # the farewell: a server that does not care must not hold us up
            request.extensions = {**request.extensions, "timeout": _FAREWELL}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("The answer is compressed, which was not asked for.")
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
