"""Tokens, good ones and bad ones, and requests that bring them."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Unauthenticated
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User, UserRole
from threadkeep.http.sign_in.method import SignInMethod

SECRET = "a secret of more than thirty-two characters"
ALICE = User(UserId("alice"))
ROOT = User(UserId("root"), UserRole.ADMIN)
RSA_KEY = rsa.generate_private_key(65537, 2048)
NO_ALGORITHMS: list[object] = ["none", "None", "NONE", "", None, 0, ["none"]]
GARBAGE = ["junk", "a.b", "a.b.c", "a.b.c.d", "..", ".", "e30.e30.", "W10.e30.AAAA", "=" * 3]


def request(*authorization: str) -> HTTPConnection:
    """A request with such headers."""
    headers = [(b"authorization", value.encode("latin-1")) for value in authorization]
    return HTTPConnection({"type": "http", "headers": headers})


def with_token(token: str) -> HTTPConnection:
    """A request with a token."""
    return request(f"Bearer {token}")


def claims(**changes: object) -> dict[str, Any]:
    """What a good token says, with changes; None leaves a claim out."""
    given = {"sub": "alice", "exp": int(time.time()) + 60} | changes
    return {name: value for name, value in given.items() if value is not None}


def rsa_token(
    key: rsa.RSAPrivateKey = RSA_KEY,
    kid: str | None = "rsa",
    header: dict[str, Any] | None = None,
    **more: object,
) -> str:
    """A token that is signed with an RSA key."""
    return jwt.encode(claims(**more), key, "RS256", {**({"kid": kid} if kid else {}), **(header or {})})


def handmade(header: dict[str, Any], payload: object, key: bytes | None) -> str:
    """A token as an attacker makes it, whatever a library would refuse to sign."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, payload)]
    signature = hmac.digest(key, b".".join(parts), hashlib.sha256) if key else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


async def refusal(way: SignInMethod, connection: HTTPConnection) -> str:
    """Why nobody is let in; the token is never part of the response or of what a log would show."""
    with pytest.raises(Unauthenticated) as caught:
        await way.user(connection)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    for part in " ".join(connection.headers.getlist("authorization")).replace(".", " ").split()[1:]:
        assert len(part) < 5 or part not in caught.value.message
    return caught.value.message
