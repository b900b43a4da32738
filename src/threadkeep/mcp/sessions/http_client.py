"""The HTTP client for a remote server: stays on the public Internet, and bounds what it accepts."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import httpx2
import msgspec
from mcp_types import JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from threadkeep.mcp.checked_transport import CheckedTransport
from threadkeep.mcp.processes.lines import MESSAGE_COSTS, Pace
from threadkeep.mcp.sessions.incoming import (
    ENDS_BYTES,
    LARGE_BYTES,
    NOT_ANSWERED,
    NOT_MCP,
    NOT_SENT,
    TOO_LARGE,
    UnreadableMessage,
    answered_id,
    is_notice,
    refusal,
)
from threadkeep.networks import Network
from threadkeep.ports.tools import MOST_RESULT_BYTES
from threadkeep.tls import tls_context

# No read timeout: each call sets its own limit.
TIMEOUT = httpx2.Timeout(10, read=None)

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LONGEST_END = 4
_HEAD_BYTES = 1024
_FAREWELL = {"connect": 1.0, "read": 1.0, "write": 1.0, "pool": 1.0}


Small = Callable[[bytes], Awaitable[bytes | None]]
"""Makes a message small enough for the session; None to skip it. Raises UnreadableMessage."""


class _Sent(msgspec.Struct):
    """A message of ours; a notification has no id."""

    id: int | str | None = None
    method: str | None = None


_decode_sent = msgspec.json.Decoder(_Sent).decode


def http_client(
    headers: Mapping[str, str],
    small: Small,
    *,
    allow_private: bool,
    denied: Sequence[Network] = (),
    timeout: httpx2.Timeout = TIMEOUT,
) -> httpx2.AsyncClient:
    """A client for one remote server, limited to the public Internet unless the operator allows more."""
    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=timeout,
        transport=_Bounded(
            httpx2.AsyncHTTPTransport(verify=tls_context())
            if allow_private and not denied
            else CheckedTransport(allow_private, denied),
            small,
        ),
    )


class _Bounded(httpx2.AsyncBaseTransport):
    """Bounds what a server can send: a single response in size, a stream in speed."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, small: Small) -> None:
        self._inner = inner
        self._small = small

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; bounds the reading of its response."""
        if request.method == "DELETE":  # the farewell: an unresponsive server must not delay us
            request.extensions = {**request.extensions, "timeout": _FAREWELL}
        sent = _sent_in(request)
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            if not _is_call(sent):
                raise
            return _own_response(sent, f"It can't be reached: {str(exc) or type(exc).__name__}", NOT_SENT)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("The response is compressed, which Threadkeep didn't request.")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        kind = _Events if is_stream else _Message
        # The SDK handles responses with an error status: it knows what the status means.
        asked = sent.id if response.is_success else None
        response.stream = kind(response.stream, self._small, asked)
        if response.is_server_error and _is_call(sent):
            return await _failed(response, sent)
        return response

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


def _sent_in(request: httpx2.Request) -> _Sent:
    """What a request carries: a message of ours, or nothing."""
    try:
        return _decode_sent(request.content)
    except msgspec.DecodeError:
        return _Sent()


def _is_call(sent: _Sent) -> bool:
    return sent.method == "tools/call" and sent.id is not None


async def _failed(response: httpx2.Response, sent: _Sent) -> httpx2.Response:
    """A call's response with status 5xx: as is if the server explains it.

    Otherwise, somebody between us may have given up while the server works.
    """
    body = await response.aread()
    try:
        is_explained = isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError)
    except ValidationError:
        is_explained = False
    if is_explained:
        return response
    return _own_response(sent, f"The server returned HTTP status {response.status_code}.", NOT_ANSWERED)


def _own_response(sent: _Sent, problem: str, code: int) -> httpx2.Response:
    """Our own response to a call, instead of the server's."""
    assert sent.id is not None
    return httpx2.Response(
        200,
        headers={"Content-Type": "application/json"},
        stream=httpx2.ByteStream(refusal(sent.id, problem, code)),
    )


class _Read(httpx2.AsyncByteStream):
    """A server's response, with large messages made small on the way.

    Replaces an unreadable message with an error for the request that it answers: the SDK would expose parser
    details, even to the model.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, small: Small, asked: int | str | None) -> None:
        self._inner = inner
        self._small = small
        self._asked = asked

    async def _readable(self, message: bytes) -> bytes | None:
        """A message that the SDK can read; None to skip it."""
        try:
            small = await self._small(message)
            if small is not None:
                jsonrpc_message_adapter.validate_json(small, by_name=False)
        except (UnreadableMessage, ValidationError) as exc:
            problem = str(exc) if isinstance(exc, UnreadableMessage) else NOT_MCP
            return self._refusal(message[:ENDS_BYTES], message[-ENDS_BYTES:], problem)
        return small

    def _refusal(self, head: bytes, tail: bytes, problem: str) -> bytes | None:
        request_id = answered_id(head, tail) if self._asked is None else self._asked
        return None if request_id is None else refusal(request_id, problem)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(_Read):
    """A stream of events, no faster than we want to read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pace, held, seen, is_skipping = Pace(), bytearray(), 0, False
        async for chunk in self._inner:
            await pace.spend(len(chunk))
            held += chunk
            while end := _EVENT_END.search(held, seen):
                await pace.spend(MESSAGE_COSTS)
                event = bytes(held[: end.end()])
                del held[: end.end()]
                seen = 0
                if not is_skipping:
                    yield await self._event(event)
                is_skipping = False
            if len(held) > MOST_RESULT_BYTES and not is_skipping:
                is_skipping = True
                yield self._too_large(bytes(held[:_HEAD_BYTES]))
            if is_skipping:
                del held[:-_LONGEST_END]
            seen = max(0, len(held) - _LONGEST_END)
        if not is_skipping:
            yield bytes(held)

    def _too_large(self, head: bytes) -> bytes:
        """Replaces an event that begins like this: with an error for its request, if it answers one."""
        begin = head.partition(b"data:")[2].lstrip()
        refused = None if is_notice(begin) else self._refusal(begin, b"", TOO_LARGE)
        return b"" if refused is None else b"data: " + refused + b"\n\n"

    async def _event(self, event: bytes) -> bytes:
        lines = event.splitlines()
        said = [line.removeprefix(b"data:").removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        message = b"\n".join(said)
        if not message:
            return event
        readable = await self._readable(message)
        if readable is message:
            return event
        others = [line for line in lines if line and not line.startswith(b"data:")]
        # Line breaks can only be between values.
        data = [] if readable is None else [b"data: " + readable.replace(b"\n", b" ")]
        return b"\n".join((*others, *data, b"", b""))


class _Message(_Read):
    """One response, no longer than we want to keep."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        message = bytearray()
        async for chunk in self._inner:
            message += chunk
            if len(message) > MOST_RESULT_BYTES:
                yield self._refusal(bytes(message[:_HEAD_BYTES]), b"", TOO_LARGE) or b""
                return
        if self._asked is None and len(message) <= LARGE_BYTES:  # not a response to us
            yield bytes(message)
        else:
            yield await self._readable(bytes(message)) or b""
