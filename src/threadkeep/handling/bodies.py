"""Reads a request's body: no more than its route accepts, and no slower than a slow connection."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope

from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge, RequestTimeout
from threadkeep.domain.text import size_text
from threadkeep.handling.discarding import DISCARD_S, Discarding
from threadkeep.handling.large_bodies import Body, LargeBodies
from threadkeep.wire.json_shape import JsonShape

# The limit for routes by default, and for those that accept a prompt or a briefing.
SMALL_BODY_BYTES = 64 * 1024
MEDIUM_BODY_BYTES = 256 * 1024

SLOWEST_BYTES_A_SECOND = 8 * 1024


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The operator's limits; a route may have lower ones."""

    most_bytes: int
    most_upload_bytes: int
    wait_s: float
    """How long a body may stall; it must arrive at `SLOWEST_BYTES_A_SECOND` on average."""
    large: LargeBodies = field(init=False)

    def __post_init__(self) -> None:
        largest = self.of_body(None, with_files=True)
        object.__setattr__(self, "large", LargeBodies(largest))

    def of_body(self, most: int | None, *, with_files: bool) -> int:
        """The most bytes of a route's JSON, which may contain files as base64."""
        if with_files:
            return self.most_bytes + self.most_upload_bytes * 4 // 3
        return min(most or self.most_bytes, self.most_bytes)


async def read_json(request: Request, body: Body, shape: JsonShape, most: int, wait_s: float) -> None:
    """Reads a request's JSON; refuses it as soon as its size or its shape proves too much."""
    if not has_body(request.scope, dict(request.scope["headers"])):
        return
    too_large = PayloadTooLarge(
        f"The request body is too large. It can have at most {size_text(most)}.", details={"most": most}
    )
    async for part in body_parts(request, most, wait_s, too_large):
        shape.add(part)
        await body.add(part)


async def body_parts(
    request: Request, most: int, wait_s: float, too_large: PayloadTooLarge
) -> AsyncGenerator[bytes]:
    """The parts of a body as they arrive."""
    if _is_longer(request.headers.get("content-length", "0"), most):
        raise too_large
    loop = asyncio.get_running_loop()
    parts = request.stream()
    size, patience = 0, wait_s
    while True:
        began = loop.time()
        try:
            async with asyncio.timeout(patience):
                part = await anext(parts, None)
        except TimeoutError:
            raise RequestTimeout("The request body didn't arrive in time. Send the request again.") from None
        except ClientDisconnect as exc:
            raise InvalidRequest("The connection closed before the request body was complete.") from exc
        if part is None:
            return
        # Who has sent much may stall no longer than others: what is held meanwhile grows with it.
        patience = min(patience - (loop.time() - began) + len(part) / SLOWEST_BYTES_A_SECOND, wait_s)
        size += len(part)
        if size > most:
            raise too_large
        yield part


def _is_longer(length: str, most: int) -> bool:
    """Whether a `Content-Length` exceeds a limit; Python refuses numbers of thousands of digits."""
    digits = length.lstrip("0")
    return digits.isdecimal() and (len(digits) > len(str(most)) or int(digits) > most)


def has_body(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether a request has a body; HTTP/2 need not say so."""
    return (
        headers.get(b"content-length", b"0") != b"0"
        or b"transfer-encoding" in headers
        or scope.get("http_version", "1.1") >= "2"
    )


class Incoming:
    """A request's body as it arrives, and whether some of it is still unread."""

    def __init__(self, receive: Receive, *, is_asked_for: bool) -> None:
        self._receive = receive
        # A sender that waits for `100 Continue` sends nothing without it.
        self._is_coming = not is_asked_for
        self._is_whole = False

    async def receive(self) -> Message:
        """The next part."""
        self._is_coming = True
        message = await self._receive()
        self._is_whole = self._is_whole or not message.get("more_body", False)
        return message

    @property
    def is_unread(self) -> bool:
        """Whether some of it has yet to arrive."""
        return self._is_coming and not self._is_whole

    async def discard(self, discarding: Discarding) -> None:
        """Discards the rest, within reason."""
        discarding.begin()
        try:
            async with asyncio.timeout(DISCARD_S):
                while self.is_unread:
                    await self.receive()
                    await asyncio.sleep(discarding.pause_s)
        except TimeoutError:
            return
        finally:
            discarding.end()
