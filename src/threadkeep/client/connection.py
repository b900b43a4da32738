"""The client's connection: typed responses, errors with their codes, streams that resume."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from copy import copy
from typing import Any, TypeVar, cast, get_args
from urllib.parse import quote

import httpx2
import msgspec

from threadkeep.client.errors import ClientError, NotReached, to_error
from threadkeep.domain.errors import ShuttingDown, StorageUnavailable
from threadkeep.domain.events import TurnEvent
from threadkeep.domain.sign_in.acting import USER_HEADER
from threadkeep.loopback import is_loopback
from threadkeep.sse import EventReader
from threadkeep.wire.events import UnreadableEvent, decode_event
from threadkeep.wire.parts import PartView
from threadkeep.wire.view import PageView

T = TypeVar("T")

_PART_TYPES = {view.__struct_config__.tag for view in get_args(PartView)}

CONNECT_S = 5.0
SILENCE_S = 60.0  # a live stream has a heartbeat every 15 s
MOST_TRIES = 5
"""How often to try a server that has never responded."""
PATIENCE_S = 60.0
"""How long to keep trying a server that has responded before: it restarts, or another node takes its place.
"""
STEADY_S = 10.0
"""A connection that lasted this long was healthy, even if nothing happened."""
PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
PAGE_SIZE = 100

_BROKEN = (httpx2.ReadError, httpx2.WriteError, httpx2.ReadTimeout, httpx2.RemoteProtocolError)
_GATEWAY = {502, 503, 504}
"""The statuses with which a proxy reports a server that it can't reach."""

_PORTS = range(1, 65536)


def user_header(user: str) -> dict[str, str]:
    """What names the user for whom an application's server asks, with its acting key."""
    return {USER_HEADER: quote(user, safe="")}


class ApiConnection:
    """A server, and the user to sign in as."""

    def __init__(
        self, url: str, headers: Mapping[str, str], transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url
        self._user: dict[str, str] = {}
        self._is_shared = False
        address = _address(url)
        try:
            self._http = httpx2.AsyncClient(
                base_url=address,
                headers=headers,
                timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
                transport=transport,
                trust_env=transport is None and not is_loopback(address.host),
            )
        except ValueError as exc:
            raise _no_address(url) from exc

    async def close(self) -> None:
        """Closes the connections, unless they are another's."""
        if not self._is_shared:
            await self._http.aclose()

    def acting_for(self, user: str) -> "ApiConnection":
        """The same server and connections, for one of an application's users."""
        other = copy(self)
        other._user, other._is_shared = user_header(user), True
        return other

    async def is_threadkeep(self, within_s: float) -> bool:
        """Whether a Threadkeep server responds."""
        try:
            response = await self._http.get("/healthz", timeout=within_s)
        except httpx2.HTTPError:
            return False
        return response.status_code == 200 and "threadkeep-version" in response.headers

    async def send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """A successful response."""
        try:
            response = await self._http.request(method, path, **self._named(request))
        except httpx2.HTTPError as exc:
            raise self._unreachable() from exc
        if not response.is_success:
            raise to_error(response)
        return response

    async def send_once(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The response to an idempotent request (by key or by nature), which is repeated if it breaks off.

        It isn't repeated if no connection could be opened at all.
        """
        retries = _Retries()
        while True:
            began_at = time.monotonic()
            try:
                response = await self._http.request(method, path, **self._named(request))
            except httpx2.HTTPError as exc:
                if isinstance(exc, _BROKEN):
                    retries.connected(began_at)
                if not retries.was_there or not await retries.pause():
                    raise self._unreachable() from exc
                continue
            if response.is_success:
                return response
            error = to_error(response)
            if not retries.comes_back(error, response.status_code) or not await retries.pause():
                raise error

    async def ask_once(self, kind: type[T], path: str, **request: Any) -> T:
        """The response to an idempotent POST as the type that the contract promises."""
        return self.read(kind, await self.send_once("POST", path, **request))

    async def pieces(self, path: str, **request: Any) -> AsyncGenerator[bytes]:
        """A possibly large response, piece by piece."""
        try:
            async with self._http.stream("GET", path, **self._named(request)) as response:
                if not response.is_success:
                    await response.aread()
                    raise to_error(response)
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx2.HTTPError as exc:
            raise self._unreachable() from exc

    async def ask(self, kind: type[T], method: str, path: str, **request: Any) -> T:
        """A response as the type that the contract promises."""
        return self.read(kind, await self.send(method, path, **request))

    def read(self, kind: type[T], response: httpx2.Response) -> T:
        """A received response as this type."""
        try:
            try:
                return msgspec.json.decode(response.content, type=kind)
            except msgspec.ValidationError:
                return msgspec.convert(_known(msgspec.json.decode(response.content)), kind)
        except msgspec.DecodeError as exc:
            raise NotReached(
                f"The server at {self._url} isn't a compatible Threadkeep version: {exc}"
            ) from exc

    async def pages(self, kind: type[T], path: str, query: Mapping[str, Any]) -> AsyncGenerator[T]:
        """All items of a list; loads pages on demand."""
        asked: dict[str, Any] = {"limit": PAGE_SIZE, **without_none(query)}
        page_kind = PageView[kind]
        while True:
            page = await self.ask(page_kind, "GET", path, params=asked)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            asked["cursor"] = page.next_cursor

    async def stream(self, method: str, path: str, **request: Any) -> AsyncGenerator[TurnEvent]:
        """The events of a turn until it has ended, each once, however often the connection breaks.

        A message that is queued or steers a turn has none.

        A request that starts a turn is repeated only if it carries an `Idempotency-Key`: otherwise it
        could start a second one.
        """
        retries = _Retries()
        while True:
            broke: Exception | None = None
            try:
                async with self._http.stream(method, path, **self._named(request)) as response:
                    if not response.is_success:
                        await response.aread()
                        broke = to_error(response)
                        if not retries.comes_back(broke, response.status_code):
                            raise broke
                    elif response.status_code in {204, 202}:
                        return  # the turn had ended and all events were seen, or the message is queued
                    else:
                        if method != "GET":
                            method, path, request = "GET", f"{response.headers['location']}/events", {}
                        retries.connected(time.monotonic())
                        async for event in _events(response):
                            retries.progressed()
                            request = {"headers": {"Last-Event-ID": str(event.seq)}}
                            yield event
                            if event.is_terminal:
                                return
            except httpx2.HTTPError as exc:
                broke = exc
            may_repeat = method == "GET" or "Idempotency-Key" in request.get("headers", {})
            if not may_repeat or not await retries.pause():
                raise self._unreachable() from broke

    def _named(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return (
            {**request, "headers": {**self._user, **request.get("headers", {})}}
            if self._user
            else {**request}
        )

    def _unreachable(self) -> NotReached:
        return NotReached(f"No response from Threadkeep at {self._url}.")


class _Retries:
    """Whether and when to repeat a request: longer if the server has responded before, and ever slower."""

    def __init__(self) -> None:
        self.was_there = False
        self._tries = 0
        self._connected_at: float | None = None
        self._lost_at = time.monotonic()

    def connected(self, at: float) -> None:
        """A connection has existed since then."""
        self.was_there = True
        self._connected_at = at

    def progressed(self) -> None:
        """Something new has arrived."""
        self._tries = 0
        self._lost_at = time.monotonic()

    def comes_back(self, error: Exception, status: int) -> bool:
        """Whether a retry may succeed: the server is ending, restarting or waiting for its database."""
        if isinstance(error, ClientError):
            is_ending = error.code == ShuttingDown.code
            self.was_there |= is_ending
            return is_ending or (self.was_there and error.code == StorageUnavailable.code)
        return status in _GATEWAY or (self.was_there and status == 500)  # from a server that was cut off

    async def pause(self) -> bool:
        """Waits for the next try; False if it is time to give up."""
        now = time.monotonic()
        if self._connected_at is not None and now - self._connected_at >= STEADY_S:
            self._tries, self._lost_at = 0, now
        self._connected_at = None
        if now - self._lost_at >= PATIENCE_S if self.was_there else self._tries + 1 >= MOST_TRIES:
            return False
        await asyncio.sleep(min(PAUSE_S * (2**self._tries - 1), LONGEST_PAUSE_S))
        self._tries += 1
        return True


def _address(url: str) -> httpx2.URL:
    try:
        address = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as exc:
        raise _no_address(url) from exc
    if address.scheme not in {"http", "https"} or not address.host or (address.port or 1) not in _PORTS:
        raise _no_address(url)
    return address


def _no_address(url: str) -> NotReached:
    return NotReached(f"{url!r} is not a valid address. Use a URL such as http://127.0.0.1:8710.")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Only the values that the caller set."""
    return {name: value for name, value in values.items() if value is not None}


def _known(value: Any, name: str = "") -> Any:
    """A newer server's response without the message parts that this version can't read."""
    match value:
        case {**fields}:
            return {inner: _known(it, inner) for inner, it in fields.items()}
        case [*items]:
            known = (it for it in items if name != "parts" or _is_known_part(it))
            return [_known(it) for it in known]
        case _:
            return value


def _is_known_part(part: Any) -> bool:
    return not isinstance(part, dict) or cast("dict[str, Any]", part).get("type") in _PART_TYPES


async def _events(response: httpx2.Response) -> AsyncGenerator[TurnEvent]:
    reader = EventReader()
    async for piece in response.aiter_bytes():
        for event in reader.feed(piece):
            try:
                yield decode_event(event.data)
            except UnreadableEvent:  # from a newer server: unknown events don't stop the rest
                continue
