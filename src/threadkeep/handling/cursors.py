"""Opaque cursors: a position in one list of one user, signed against forgery."""

import base64
import binascii
import hmac
from typing import Any, TypeVar

import msgspec

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.user import User

_SIGNATURE_BYTES = 12

T = TypeVar("T")


class Cursors:
    """Makes and reads cursors with the database's key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, user: User, listing: str, position: Any) -> str:
        """A cursor that continues `listing` after `position`, for this user only."""
        payload = msgspec.json.encode(position)
        return _encode(self._sign(user, listing, payload) + payload)

    def read(self, user: User, listing: str, cursor: str, position_type: type[T]) -> T:
        """A cursor's position; refuses anything that we didn't write for this list."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as exc:
            raise _refused() from exc
        # Only one spelling per position: base64 itself accepts several for the same bytes.
        if _encode(raw) != cursor:
            raise _refused()
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(user, listing, payload)):
            raise _refused()
        try:
            return msgspec.json.decode(payload, type=position_type)
        except msgspec.MsgspecError as exc:
            raise _refused() from exc

    def _sign(self, user: User, listing: str, payload: bytes) -> bytes:
        scope = msgspec.json.encode([user.id, listing])
        return hmac.digest(self._key, scope + b"\n" + payload, "sha256")[:_SIGNATURE_BYTES]


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _refused() -> InvalidRequest:
    return InvalidRequest(
        "This cursor belongs to another list. Use `nextCursor` from the previous page, with the same "
        "filters.",
        param="cursor",
    )
