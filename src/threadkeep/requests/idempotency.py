"""The key with which a client repeats a request safely.

Where a turn begins or a conversation is created, the key is stored with it. Any other request that creates
something is noted here before it is carried out, and its response is kept for a day: whoever repeats it gets
the same response. What was refused can be sent again. If the server is killed in between, nobody knows
whether the request took effect; a repetition is then refused instead of creating something twice.
"""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable

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
from threadkeep.services.services import Services
from threadkeep.wire.decoding import Content

MOST_KEY_CHARACTERS = 255
MOST_KEPT_BYTES = 32 * 1024
"""A larger response isn't kept; who repeats its request learns only that it took effect."""

_IN_DOUBT = (
    "A request with this Idempotency-Key has begun and isn't answered yet. Retry in a moment. If that "
    "doesn't help, the server was stopped meanwhile: look whether the request took effect before you send "
    "it with another key."
)
_NOT_KEPT = "This request took effect before; its response was too large to be kept."


class _Kept(msgspec.Struct, frozen=True):
    """A response; `body` is None if it was too large."""

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


async def respond_once(
    services: Services,
    user: User,
    key: str,
    asked: tuple[str, Content],
    respond: Callable[[], Awaitable[Response]],
) -> Response:
    """The response to a request, or the one that it got before. `asked` is its address and its body."""
    repeats = services.store.repeats
    request_hash = await asyncio.to_thread(_hash, *asked)  # the body may be long
    name, box = _digest(user, key, "name").hex(), Fernet(base64.urlsafe_b64encode(_digest(user, key, "box")))
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
        await repeats.answer(user.id, name, box.encrypt(_pack(response)).decode())
        return response
    if begun.request_hash != request_hash:
        raise IdempotencyMismatch("This Idempotency-Key was already used with a different request.")
    if begun.response is None:
        raise Conflict(_IN_DOUBT)
    return _unpack(box.decrypt(begun.response.encode()))


def _hash(address: str, body: Content) -> str:
    digest = hashlib.sha256(f"{address}\n".encode())
    digest.update(body)
    return digest.hexdigest()


def _digest(user: User, key: str, purpose: str) -> bytes:
    """Differs between users, and doesn't tell the key."""
    return hashlib.sha256(f"{purpose}\n{user.id}\n{key}".encode()).digest()


def _pack(response: Response) -> bytes:
    body = bytes(response.body)
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    kept = body.decode() if len(body) <= MOST_KEPT_BYTES else None
    return msgspec.json.encode(_Kept(response.status_code, headers, kept))


def _unpack(packed: bytes) -> Response:
    kept = msgspec.json.decode(packed, type=_Kept)
    if kept.body is None:
        raise Conflict(_NOT_KEPT)
    return Response(kept.body, kept.status, kept.headers)
