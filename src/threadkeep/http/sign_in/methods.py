"""The ways to sign in, one of which the settings or the host application choose."""

import asyncio
import inspect
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import httpx2
import jwt
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Forbidden, Unauthenticated
from threadkeep.domain.user import LOCAL, User, UserRole
from threadkeep.http.sign_in.access_tokens import (
    KEY_SET_ALGORITHMS,
    NOT_OURS,
    SECRET_ALGORITHMS,
    Expected,
    checked_user,
    expected_of,
    issue_token,
    refused,
    token_user,
)
from threadkeep.http.sign_in.accounts import Accounts
from threadkeep.http.sign_in.bearer import bearer_token, required_token
from threadkeep.http.sign_in.key_set import KeySet
from threadkeep.http.sign_in.local_token import is_token_required, make_token
from threadkeep.settings import Settings
from threadkeep.wire.inside import CONNECTION, INSIDE

ROOT = 0

Who = User | str | None
# Hosts annotate the argument as they like: a Request, or a WebSocket on `/ws`.
CurrentUser = Callable[[Any], Who | Awaitable[Who]]


class SignInMethod(Protocol):
    """A way to identify the sender of a request."""

    async def user(self, request: HTTPConnection) -> User:
        """The signed-in user; raises Unauthenticated if there is none."""
        ...

    async def close(self) -> None:
        """Releases resources; most have none."""


def sign_in(settings: Settings, current_user: CurrentUser | None = None) -> SignInMethod:
    """The sign-in that the host application or the settings define."""
    if current_user is not None:
        return HostSignIn(current_user)
    settings.check_sign_in()
    if settings.jwt_secret:
        return SharedSecretSignIn(settings.jwt_secret, expected_of(settings))
    if settings.jwks_url:
        return KeySetSignIn(settings.jwks_url, expected_of(settings))
    return LocalSignIn(settings.data, requires_token=settings.require_token)


class LocalSignIn(SignInMethod):
    """Without configuration, the account that runs the server is the user `local`, and so is root.

    If the system doesn't report accounts, everybody on this machine is. Only holders of the token may have
    programs run; once a program is configured, everybody needs the token.
    """

    def __init__(self, data: Path, *, requires_token: bool, accounts: Accounts | None = None) -> None:
        self._data = data
        self._requires_token = requires_token
        self._accounts = accounts or Accounts()
        self._token: str | None = None

    async def user(self, request: HTTPConnection) -> User:
        marks = request.scope.get("extensions", ())
        if INSIDE in marks:
            return User(LOCAL, UserRole.ADMIN)
        if CONNECTION not in marks:
            raise Forbidden(
                "Without sign-in, only Threadkeep's own server (`threadkeep serve`) lets requests in: "
                "others, such as `uvicorn`, don't say reliably where one comes from. Turn on sign-in with "
                "THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL, or pass `current_user` to create_app()."
            )
        if self._accounts.are_known:
            await self._check_account(request)
        has_token = await self._has_token(request)
        if not has_token and (self._requires_token or is_token_required(self._data)):
            raise Unauthenticated(
                "This server requires its token. Run `threadkeep open` to open the page with it, or "
                "`threadkeep token` to print it."
            )
        return User(LOCAL, UserRole.ADMIN, may_run_programs=has_token)

    async def _check_account(self, request: HTTPConnection) -> None:
        client, server = request.scope.get("client"), request.scope.get("server")
        account = await self._accounts.of(client, server) if client and server else None
        if account not in {os.geteuid(), ROOT}:
            raise Forbidden(
                "Only the account that runs this server can use it, because sign-in is off. The operator "
                "can turn on sign-in with THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL."
            )

    async def _has_token(self, request: HTTPConnection) -> bool:
        given = bearer_token(request)
        if given is None:
            return False
        if self._token is None:
            self._token = await asyncio.to_thread(make_token, self._data)
        return secrets.compare_digest(given, self._token)


class HostSignIn(SignInMethod):
    """The host application knows its own users."""

    def __init__(self, current_user: CurrentUser) -> None:
        # `object`: not every host checks types, and a number must not become a user nobody knows.
        self._current_user: Callable[[Any], object] = current_user

    async def user(self, request: HTTPConnection) -> User:
        match await self._ask(request):
            case None:
                raise Unauthenticated("Sign in first.")
            case User() as user:
                return checked_user(user.id, user.role)
            case str() as name:
                return checked_user(name, UserRole.USER)
            case other:
                raise TypeError(f"current_user must return a str, a User or None, not {type(other).__name__}")

    async def _ask(self, request: HTTPConnection) -> object:
        try:
            who = self._current_user(request)
            return await who if inspect.isawaitable(who) else who
        except HTTPException as exc:  # how hosts on Starlette and FastAPI refuse access
            if exc.status_code == 401:
                raise Unauthenticated("Sign in first.") from exc
            if exc.status_code == 403:
                raise Forbidden("The application doesn't allow this user.") from exc
            raise


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
