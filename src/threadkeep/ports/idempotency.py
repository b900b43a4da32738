"""Keys with which clients repeat requests safely."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for a request, and the request's hash, to recognize a retry."""

    name: str
    request_hash: str

    @staticmethod
    def of(name: str | None, request: str) -> "IdempotencyKey | None":
        """The key that a client gave, if any, with the hash of what it asked for."""
        return IdempotencyKey(name, hashlib.sha256(request.encode()).hexdigest()) if name else None
