"""The key with which a client repeats a request safely.

Where a turn begins or a conversation is created, the key is stored with it. Any other request that creates
something is noted here before it is carried out, and its response is kept for a day: a repeated request gets
the same response, and of a stream what it said at its end. What was refused, and a stream that was left, can
be sent again. If the server is killed in between, nobody knows whether the request took effect; a repetition
is then refused instead of creating something twice.
"""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import msgspec
from cryptography.fernet import Fernet
from starlette.requests import Request
from starlette.responses import Response

from threadkeep.domain.errors import (
    Conflict,
    IdempotencyMismatch,
    InvalidRequest,
    StorageError,
    ThreadkeepError,
)
from threadkeep.domain.user import User
from threadkeep.handling.services import Services
from threadkeep.handling.stream import EventStream
from threadkeep.wire.decoding import Content

MOST_KEY_CHARACTERS = 255
MOST_KEPT_BYTES = 32 * 1024
"""A larger response isn't kept; who repeats its request learns only that it took effect."""

_IN_DOUBT = (
    "A request with this Idempotency-Key has begun and isn't answered yet. Retry in a moment. If that "
    "doesn't help, the server was stopped meanwhile: look whether the request took effect before you send "
    "it with another key."
)
_NOT_KEPT = (
    "This request took effect before. Its response isn't kept: it shows a secret once, or is too large. "
    "Delete what it created and send it with another key if you need the response."
)


class _Kept(msgspec.Struct, frozen=True):
    """A response; `body` is None if it isn't kept."""

    status: int
    headers: dict[str, str]
    body: str | None


def idempotency_key(request: Request) -> str | None:
    """The request's `Idempotency-Key`."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MOST_KEY_CHARACTERS:
        raise InvalidRequest(
            f"An Idempotency-Key must have 1 to {MOST_KEY_CHARACTERS} characters.", param="Idempotency-Key"
        )
    return key


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """A request with a key: who sends it, and what it asks for."""

    user: User
    key: str
    address: str
    body: Content
    keeps_response: bool = True

    @property
    def name(self) -> str:
        """Differs between users, and doesn't reveal the key."""
        return self._digest("name").hex()

    @property
    def box(self) -> Fernet:
        """What encrypts the response: only a client with the key can read it."""
        return Fernet(base64.urlsafe_b64encode(self._digest("box")))

    def hash(self) -> str:
        """What it asks for, in short."""
        digest = hashlib.sha256(f"{self.address}\n".encode())
        digest.update(self.body)
        return digest.hexdigest()

    def _digest(self, purpose: str) -> bytes:
        return hashlib.sha256(f"{purpose}\n{self.user.id}\n{self.key}".encode()).digest()


async def respond_once(
    services: Services, request: RepeatableRequest, respond: Callable[[], Awaitable[Response]]
) -> Response:
    """The response to a request, or the one that it got before."""
    repeats, user, name = services.store.repeats, request.user, request.name
    request_hash = await asyncio.to_thread(request.hash)  # the body may be long
    await services.users.meet(user)
    begun = await repeats.begin(user.id, name, request_hash)
    if begun is None:
        try:
            response = await respond()
        except StorageError:
            raise  # it may have been stored all the same
        except ThreadkeepError:
            await repeats.forget(user.id, name)
            raise
        if isinstance(response, EventStream):
            response.when_over(partial(_note_end, services, request, response))
        else:
            await _keep(services, request, response)
        return response
    if begun.request_hash != request_hash:
        raise IdempotencyMismatch("This Idempotency-Key was already used with a different request.")
    if begun.response is None:
        raise Conflict(_IN_DOUBT)
    return _unpack(request.box.decrypt(begun.response.encode()))


async def _keep(services: Services, request: RepeatableRequest, response: Response) -> None:
    packed = _pack(response, keeps_body=request.keeps_response)
    await services.store.repeats.answer(request.user.id, request.name, request.box.encrypt(packed).decode())


async def _note_end(
    services: Services, request: RepeatableRequest, stream: EventStream, last_frames: bytes | None
) -> None:
    """Keeps what a stream said at its end; one that doesn't get there has left nothing."""
    if last_frames is None:
        await services.store.repeats.forget(request.user.id, request.name)
    else:
        await _keep(services, request, Response(last_frames, stream.status_code, stream.headers))


def _pack(response: Response, *, keeps_body: bool) -> bytes:
    body = bytes(response.body)
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    kept = body.decode() if keeps_body and len(body) <= MOST_KEPT_BYTES else None
    return msgspec.json.encode(_Kept(response.status_code, headers, kept))


def _unpack(packed: bytes) -> Response:
    kept = msgspec.json.decode(packed, type=_Kept)
    if kept.body is None:
        raise Conflict(_NOT_KEPT)
    return Response(kept.body, kept.status, kept.headers)
