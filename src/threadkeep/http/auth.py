"""Signing in: who sends a request."""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import httpx
import jwt
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Forbidden, Unauthenticated
from threadkeep.domain.user import LOCAL, User, UserRole
from threadkeep.http.access_tokens import (
    KEY_SET_ALGORITHMS,
    NOT_OURS,
    SECRET_ALGORITHMS,
    Expected,
    checked_user,
    issue_token,
    refused,
    required_token,
    token_user,
)
from threadkeep.http.key_set import KeySet
from threadkeep.settings import Settings

Who = User | str | None
# Hosts annotate the argument as they like: it is a Request, or a WebSocket on `/ws`.
CurrentUser = Callable[[Any], Who | Awaitable[Who]]


class SignIn(Protocol):
    """Tells who sends a request."""

    async def user(self, request: HTTPConnection) -> User:
        """The signed-in user; raises Unauthenticated where there is none."""
        ...

    async def close(self) -> None:
        """Lets go of what is held; most hold nothing."""


def sign_in(settings: Settings, current_user: CurrentUser | None = None) -> SignIn:
    """The way to sign in that the host application or the settings ask for."""
    if current_user is not None:
        return HostSignIn(current_user)
    settings.check_sign_in()
    if settings.jwt_secret:
        return SharedSecretSignIn(settings.jwt_secret, expected_of(settings))
    if settings.jwks_url:
        return KeySetSignIn(settings.jwks_url, expected_of(settings))
    return LocalSignIn()


def expected_of(settings: Settings) -> Expected:
    """What the operator expects of a token."""
    return Expected(settings.jwt_issuer, settings.jwt_audience, settings.admin)


class LocalSignIn(SignIn):
    """Without configuration everyone on this machine is the user `local`, whatever the request says."""

    async def user(self, request: HTTPConnection) -> User:
        return User(LOCAL, UserRole.ADMIN)


class HostSignIn(SignIn):
    """The host application knows its own users."""

    def __init__(self, current_user: CurrentUser) -> None:
        # `object`: not every host checks types, and a number must not become a user nobody knows.
        self._current_user: Callable[[Any], object] = current_user

    async def user(self, request: HTTPConnection) -> User:
        match await self._ask(request):
            case None:
                raise Unauthenticated("Nobody is signed in.")
            case User() as user:
                return checked_user(user.id, user.role)
            case str() as name:
                return checked_user(name, UserRole.USER)
            case other:
                raise TypeError(f"current_user must return a str, a User or None, not {type(other).__name__}")

    async def _ask(self, request: HTTPConnection) -> object:
        try:
            answer = self._current_user(request)
            return await answer if inspect.isawaitable(answer) else answer
        except HTTPException as exc:  # how hosts on Starlette and FastAPI turn people away
            if exc.status_code == 401:
                raise Unauthenticated("Nobody is signed in.") from exc
            if exc.status_code == 403:
                raise Forbidden("The application does not let this user in.") from exc
            raise


class SharedSecretSignIn(SignIn):
    """Tokens signed with a secret that the issuer shares with us."""

    def __init__(self, secret: str, expected: Expected | None = None) -> None:
        # A secret that cannot sign is found here rather than by every request.
        issue_token(secret, User(LOCAL), 0)
        self._secret, self._expected = secret, expected or Expected()

    async def user(self, request: HTTPConnection) -> User:
        token = required_token(request)
        return token_user(token, self._secret, SECRET_ALGORITHMS, self._expected)


class KeySetSignIn(SignIn):
    """Tokens signed by a provider that publishes its keys (OIDC)."""

    def __init__(
        self,
        url: str,
        expected: Expected,
        client: httpx.AsyncClient | None = None,
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
