"""Calls a provider over HTTP: sends, retries, and reads the reply as it arrives."""

import asyncio
import ipaddress
import logging
import secrets
import time
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx2

from threadkeep.gateways.addresses import AddressNotAllowed, Resolve, resolve
from threadkeep.gateways.refusals import (
    Refused,
    UnreadableReply,
    broke_off,
    busy_for_long,
    no_stream,
    pause_asked_for,
    refusal,
)
from threadkeep.gateways.transport import StreamTransport
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    GatewayUnreachable,
    ModelEvent,
    ReplyBrokeOff,
    Retrying,
    TextDelta,
    ThoughtDelta,
    UnshownDelta,
)
from threadkeep.ports.gateways import CONNECTED, UNKNOWN, failing
from threadkeep.sse import EventReader, EventTooLong, ServerSentEvent
from threadkeep.tls import tls_context

CONNECT_S = 10.0
SILENCE_S = 60.0
FIRST_PAUSE_S = 0.5
RETRIES_S = 20.0
"""How long after the first request the last may be sent."""
MOST_REPLY_BYTES = 64 * 1024 * 1024  # more than today's longest replies take, token by token
MOST_ERROR_BYTES = 64 * 1024
MOST_DOCUMENT_BYTES = 8 * 1024 * 1024
ERROR_BODY_S = 5.0
LAST_BYTES_S = 0.2

_log = logging.getLogger(__name__)


class ReplyReader(Protocol):
    """Reads one reply of a model, event by event."""

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said that this is all."""
        ...

    def read(self, event: ServerSentEvent) -> Sequence[ModelEvent]:
        """The meaning of a stream event; raises GatewayError."""
        ...

    def end(self) -> Sequence[ModelEvent]:
        """The meaning of the stream's end; raises GatewayError if something is missing."""
        ...


def _jitter() -> float:
    return secrets.randbelow(1000) / 1000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait and when to retry; tests supply their own time."""

    silence_s: float = SILENCE_S
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.time
    elapsed: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = _jitter

    def pause(self, tries: int, asked_s: float | None) -> float:
        """How long to wait after so many tries: what the provider asks for, but longer each time."""
        usual = FIRST_PAUSE_S * 2 ** (tries - 1) * (1 + self.jitter())
        return max(usual, asked_s or 0.0)


class Provider:
    """One model address, with its key."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        secret: str,
        patience: RetryPolicy,
        transport: httpx2.AsyncBaseTransport | None,
        name: str,
    ) -> None:
        self._name = name
        self._headers = httpx2.Headers(
            {
                "user-agent": "threadkeep",
                "accept": "text/event-stream, application/json",
                "accept-encoding": "identity",  # compressed pieces would wait for each other
                "content-type": "application/json",
                **headers,
            }
        )
        self._url = httpx2.URL(url)
        self._secret = secret
        self._patience = patience
        # No client on top: a model's address needs no redirects, cookies and the like.
        self._transport = transport or open_transport(self._url)
        self._calls = 0
        self._is_retired = False
        self.health = UNKNOWN
        """What the last request has shown."""

    async def retire(self) -> None:
        """Closes connections once its last call has ended; a turn that runs on it may still call again."""
        self._is_retired = True
        if self._calls == 0:
            await self.close()

    async def close(self) -> None:
        """Closes connections."""
        await self._transport.aclose()

    async def ask_adapting(
        self,
        body: Callable[[], bytes],
        begin: Callable[[], ReplyReader],
        learn: Callable[[str], None],
        *,
        in_thread: bool = False,
    ) -> AsyncGenerator[ModelEvent]:
        """The model's reply; retries if `learn` finds in a refusal how the body has to change.

        `in_thread`: the body is so large that building it would block everything else.
        """
        sent = await asyncio.to_thread(body) if in_thread else body()
        has_begun = False
        while True:
            events = self.ask(sent, begin)
            try:
                async for event in events:
                    if not has_begun and not isinstance(event, Retrying):
                        # Contains the whole context, which nobody sends again once the reply has begun.
                        has_begun, sent = True, b""
                    yield event
                return
            except Refused as exc:
                learn(exc.reason)
                # Compared, because another request may have learned it while this one was refused.
                refused, sent = sent, await asyncio.to_thread(body) if in_thread else body()
                if has_begun or sent == refused:
                    raise
                _log.info("retrying without what the model provider rejected: %s", exc.reason)
            finally:
                await events.aclose()

    async def ask(self, body: bytes, begin: Callable[[], ReplyReader]) -> AsyncGenerator[ModelEvent]:
        """The model's reply; retries for a while as long as nothing of it has arrived."""
        tries, last_s = 0, self._patience.elapsed() + RETRIES_S
        while True:
            tries += 1
            has_begun = False
            events = self._ask_once(body, begin())
            try:
                async for event in events:
                    has_begun, body = True, b""
                    yield event
                return
            except (GatewayUnavailable, UnreadableReply) as exc:
                if has_begun:
                    raise ReplyBrokeOff(exc.message) from exc
                if isinstance(exc, UnreadableReply):
                    raise
                notice = self._retry(exc, tries, last_s)
            finally:
                await events.aclose()
            yield notice
            await self._patience.sleep(notice.pause_s)

    def _retry(self, error: GatewayUnavailable, tries: int, last_s: float) -> Retrying:
        """The next try; raises the error if it would be too late."""
        pause_s = self._patience.pause(tries, error.after_s)
        if self._patience.elapsed() + pause_s <= last_s:
            return Retrying(error, pause_s)
        if error.after_s is not None and pause_s == error.after_s:
            raise busy_for_long(error, pause_s) from error
        raise error

    async def _ask_once(self, body: bytes, reply: ReplyReader) -> AsyncGenerator[ModelEvent]:
        responding = self._responding("POST", self._url, body)
        del body
        try:
            async with responding as response:
                reader, size = EventReader(), 0
                has_events, opening = False, b""
                pieces = _pieces(response)
                async for piece in pieces:
                    size += len(piece)
                    if size > MOST_REPLY_BYTES:
                        raise GatewayError("The model's response is too long.", retryable=True)
                    events = reader.feed(piece)
                    if not has_events:
                        has_events = bool(events)
                        opening = (opening + piece)[:MOST_ERROR_BYTES]
                    for meaning in _read_piece(events, reply):
                        yield meaning
                    if reply.is_complete:
                        await _read_last_bytes(pieces)
                        return
                if not has_events and (error := no_stream(opening, secret=self._secret)):
                    raise error
                for meaning in _read_end(reader, reply):
                    yield meaning
        except EventTooLong as exc:
            raise UnreadableReply from exc
        except httpx2.ReadTimeout as exc:
            raise self._silent() from exc
        except httpx2.HTTPError as exc:
            raise broke_off() from exc

    async def get(self, url: str) -> bytes:
        """The document at one of the provider's addresses; raises GatewayError."""
        document = bytearray()
        try:
            async with (
                self._responding("GET", httpx2.URL(url), b"") as response,
                asyncio.timeout(self._patience.silence_s),
            ):
                async for piece in response.aiter_bytes():
                    document += piece
                    if len(document) > MOST_DOCUMENT_BYTES:
                        raise GatewayError("The model provider's response is too long.")
        except (httpx2.HTTPError, TimeoutError) as exc:
            raise broke_off() from exc
        return bytes(document)

    @asynccontextmanager
    async def _responding(self, method: str, url: httpx2.URL, body: bytes) -> AsyncGenerator[httpx2.Response]:
        """A successful response while it is read; the last one of a retired address closes connections."""
        self._calls += 1
        try:
            response = await self._respond(method, url, body)
            del body  # contains the whole context
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            self._calls -= 1
            if self._is_retired and self._calls == 0:
                await self.close()

    async def _respond(self, method: str, url: httpx2.URL, body: bytes) -> httpx2.Response:
        """A successful response; remembers how it went. One that rejects only this request is an answer."""
        try:
            response = await self._send(method, url, body)
            if not response.is_success:
                try:
                    raise await self._refusal(response)
                finally:
                    await response.aclose()
        except GatewayError as exc:
            self.health = CONNECTED if isinstance(exc, Refused) else failing(exc)
            raise
        self.health = CONNECTED
        return response

    async def _send(self, method: str, url: httpx2.URL, body: bytes) -> httpx2.Response:
        timeout = httpx2.Timeout(self._patience.silence_s, connect=CONNECT_S, pool=None).as_dict()
        request = httpx2.Request(
            method, url, content=body, headers=self._headers, extensions={"timeout": timeout}
        )
        try:
            return await self._transport.handle_async_request(request)
        except httpx2.ReadTimeout as exc:
            raise self._silent() from exc
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            if isinstance(exc.__cause__, AddressNotAllowed):
                raise GatewayError(f"The gateway's address isn't allowed: {exc.__cause__}") from exc
            _log.warning("couldn't connect to the model provider %s: %s", self._name, exc)
            raise GatewayUnreachable("Couldn't connect to the model provider.") from exc
        except httpx2.HTTPError as exc:
            _log.warning("the model provider %s closed the connection: %s", self._name, type(exc).__name__)
            raise GatewayUnreachable("The model provider closed the connection.") from exc

    async def _refusal(self, response: httpx2.Response) -> GatewayError:
        body = bytearray()
        try:
            async with asyncio.timeout(ERROR_BODY_S):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) >= MOST_ERROR_BYTES:
                        break
        except (httpx2.HTTPError, TimeoutError):
            pass  # the status says enough
        after_s = pause_asked_for(response.headers, self._patience.clock)
        return refusal(
            response.status_code, bytes(body[:MOST_ERROR_BYTES]), after_s=after_s, secret=self._secret
        )

    def _silent(self) -> GatewayError:
        silence = f"{self._patience.silence_s:g} s"
        return GatewayUnavailable(f"The model sent nothing for {silence}.")


def _pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    if "content-encoding" in response.headers:  # some proxies compress although we asked for plain
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return aiter(response.stream)


def _read_piece(events: Sequence[ServerSentEvent], reply: ReplyReader) -> Iterator[ModelEvent]:
    """The meaning of events that arrived together; merges their text, which is cheaper downstream."""
    held: ModelEvent | None = None
    try:
        for event in events:
            for meaning in reply.read(event):
                match held, meaning:
                    case TextDelta(before), TextDelta(text):
                        held = TextDelta(before + text)
                    case ThoughtDelta(before), ThoughtDelta(text):
                        held = ThoughtDelta(before + text)
                    case UnshownDelta(before), UnshownDelta(size):
                        held = UnshownDelta(before + size)
                    case _:
                        if held is not None:
                            yield held
                        held = meaning
            if reply.is_complete:
                break
    except GatewayError:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def _read_end(reader: EventReader, reply: ReplyReader) -> Iterator[ModelEvent]:
    try:
        for event in reader.finish():
            yield from reply.read(event)
    except UnreadableReply:
        pass  # half an event
    if not reply.is_complete:
        yield from reply.end()


async def _read_last_bytes(pieces: AsyncIterator[bytes]) -> None:
    """Reads to the very end, which has mostly arrived already, so that the connection can be reused."""
    try:
        async with asyncio.timeout(LAST_BYTES_S):
            async for _ in pieces:
                pass
    except (httpx2.HTTPError, TimeoutError):
        pass  # the reply is complete anyway


def open_transport(url: httpx2.URL, resolve: Resolve = resolve) -> httpx2.AsyncBaseTransport:
    """Connects to an address that `resolve` gives, or through the machine's proxy, which resolves names."""
    proxy = _proxy(url)
    if proxy is not None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        return httpx2.AsyncHTTPTransport(proxy=proxy, limits=limits)
    return StreamTransport(tls_context() if url.scheme == "https" else None, resolve=resolve)


def _proxy(url: httpx2.URL) -> str | None:
    """The machine's proxy for this address; never for a model on the machine itself."""
    try:
        is_local = ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        is_local = url.host == "localhost"
    if is_local or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
