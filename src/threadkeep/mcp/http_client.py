"""The HTTP client for a remote server: it stays on the Internet, and takes only so much."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import httpx2

from threadkeep.mcp.addresses import Network, allowed_addresses
from threadkeep.mcp.lines import MESSAGE_COSTS, MOST_LINE_BYTES, Pace

# No limit on reading: how long a call may take is decided where it is made.
TIMEOUT = httpx2.Timeout(10, read=None)

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LONGEST_END = 4
_NOTHING = b"null"  # the SDK finds that this is no message
_FAREWELL = {"connect": 1.0, "read": 1.0, "write": 1.0, "pool": 1.0}


Small = Callable[[bytes], Awaitable[bytes | None]]
"""Makes a message small enough for the session; None where it cannot be read."""


def http_client(
    headers: Mapping[str, str],
    small: Small,
    *,
    allow_private: bool,
    denied: Sequence[Network] = (),
    timeout: httpx2.Timeout = TIMEOUT,
) -> httpx2.AsyncClient:
    """A client for one remote server that does not leave the Internet, unless the operator allows it."""
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=timeout,
        transport=_Bounded(
            httpx2.AsyncHTTPTransport()
            if allow_private and not denied
            else _CheckedTransport(allow_private, denied),
            small,
        ),
    )


class _CheckedTransport(httpx2.AsyncBaseTransport):
    """Connects to the very address that was found to be allowed; the name stays for TLS and `Host`."""

    def __init__(self, allow_private: bool, denied: Sequence[Network]) -> None:
        self._allow_private = allow_private
        self._denied = denied
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request to the first address of its host that can be reached."""
        url = request.url
        try:
            addresses = await allowed_addresses(
                url.host,
                url.port or (443 if url.scheme == "https" else 80),
                allow_private=self._allow_private,
                denied=self._denied,
            )
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

    def __init__(self, inner: httpx2.AsyncBaseTransport, small: Small) -> None:
        self._inner = inner
        self._small = small

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
        kind = _Events if is_stream else _Message
        response.stream = kind(response.stream, self._small)
        return response

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


class _Read(httpx2.AsyncByteStream):
    """What a server sends, with large messages made small on the way."""

    def __init__(self, inner: httpx2.AsyncByteStream, small: Small) -> None:
        self._inner = inner
        self._small = small

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(_Read):
    """A stream of events, not faster than we care to read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pace, held, seen = Pace(), bytearray(), 0
        async for chunk in self._inner:
            await pace.spend(len(chunk))
            held += chunk
            while end := _EVENT_END.search(held, seen):
                await pace.spend(MESSAGE_COSTS)
                yield await self._event(bytes(held[: end.end()]))
                del held[: end.end()]
                seen = 0
            seen = max(0, len(held) - _LONGEST_END)
            if len(held) > MOST_LINE_BYTES:  # more than the SDK takes, who says so
                yield bytes(held)
                held.clear()
                seen = 0
        yield bytes(held)

    async def _event(self, event: bytes) -> bytes:
        lines = event.splitlines()
        said = [line.removeprefix(b"data:").removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        message = b"\n".join(said)
        small = await self._small(message)
        if small is message:
            return event
        others = [line for line in lines if line and not line.startswith(b"data:")]
        return b"\n".join((*others, b"data: " + (_NOTHING if small is None else small), b"", b""))


class _Message(_Read):
    """One answer, not longer than we care to keep."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        message = bytearray()
        async for chunk in self._inner:
            message += chunk
            if len(message) > MOST_LINE_BYTES:
                raise httpx2.StreamError(f"The message has more than {MOST_LINE_BYTES} bytes.")
        small = await self._small(bytes(message))
        yield _NOTHING if small is None else small
