"""Sign-in by token, signed with a shared secret or by a provider. Loads what checks signatures."""

import time
from collections.abc import Callable

import httpx2
import jwt
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Unauthenticated
from threadkeep.domain.user import LOCAL, User
from threadkeep.http.sign_in.access_tokens import (
    KEY_SET_ALGORITHMS,
    NOT_OURS,
    SECRET_ALGORITHMS,
    Expected,
    expected_of,
    issue_token,
    refused,
    token_user,
)
from threadkeep.http.sign_in.bearer import required_token
from threadkeep.http.sign_in.key_set import KeySet
from threadkeep.http.sign_in.method import SignInMethod
from threadkeep.settings import Settings


def sign_in_by_token(settings: Settings) -> SignInMethod:
    """The sign-in that the settings define."""
    if settings.jwt_secret:
        return SharedSecretSignIn(settings.jwt_secret, expected_of(settings))
    assert settings.jwks_url
    return KeySetSignIn(settings.jwks_url, expected_of(settings))


class SharedSecretSignIn(SignInMethod):
    """Tokens signed with a secret that the issuer shares with us."""

    def __init__(self, secret: str, expected: Expected | None = None) -> None:
        # Find an unusable secret here rather than at every request.
        issue_token(secret, User(LOCAL), 0)
        self._secret, self._expected = secret, expected or Expected()

    async def user(self, request: HTTPConnection) -> User:
        token = required_token(request)
        return token_user(token, self._secret, SECRET_ALGORITHMS, self._expected)


class KeySetSignIn(SignInMethod):
    """Tokens signed by a provider that publishes its keys (OIDC)."""

    def __init__(
        self,
        url: str,
        expected: Expected,
        client: httpx2.AsyncClient | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expected = expected
        self._keys = KeySet(url, client, clock)

    async def user(self, request: HTTPConnection) -> User:
        token = required_token(request)
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as exc:
            raise refused(exc) from None
        if (algorithm := header.get("alg")) not in KEY_SET_ALGORITHMS:
            raise Unauthenticated(NOT_OURS)
        key = await self._keys.key(header.get("kid"), algorithm)
        return token_user(token, key, KEY_SET_ALGORITHMS, self._expected)

    async def close(self) -> None:
        await self._keys.close()
