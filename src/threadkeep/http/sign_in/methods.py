"""The ways to sign in; the settings or the host application choose one."""

import asyncio
import inspect
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import Forbidden, SettingsError, Unauthenticated
from threadkeep.domain.user import LOCAL, User, UserRole, signed_in_user
from threadkeep.http.sign_in.accounts import Accounts
from threadkeep.http.sign_in.bearer import bearer_token
from threadkeep.http.sign_in.local_token import is_token_required, make_token
from threadkeep.http.sign_in.method import SignInMethod
from threadkeep.settings import Settings
from threadkeep.wire.inside import CONNECTION, INSIDE

ROOT = 0

WAYS = (
    "invitations (THREADKEEP_INVITATIONS=on, then `threadkeep invite NAME`), an OpenID Connect provider (a "
    "table [sign_in.NAME] in threadkeep.toml) or tokens (THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL)"
)
"""How an operator lets people sign in."""

Who = User | str | None
# Hosts annotate the argument as they like: a Request, or a WebSocket on `/ws`.
CurrentUser = Callable[[Any], Who | Awaitable[Who]]


def sign_in(settings: Settings, current_user: CurrentUser | None = None) -> SignInMethod:
    """The sign-in that the host application or the settings define."""
    if current_user is not None:
        if settings.has_sessions:
            raise SettingsError(
                "An application with `current_user` signs its users in itself. Remove THREADKEEP_INVITATIONS "
                "and [sign_in.NAME]."
            )
        return HostSignIn(current_user)
    settings.check_sign_in()
    if not settings.signs_in:
        return LocalSignIn(settings.data, requires_token=settings.require_token)
    if not settings.takes_tokens:
        return SessionsOnly()
    from threadkeep.http.sign_in.by_token import sign_in_by_token  # noqa: PLC0415 - loads cryptography

    return sign_in_by_token(settings)


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
                "others, such as `uvicorn`, don't say reliably where one comes from. Pass `current_user` to "
                f"create_app(), or let people sign in with {WAYS}."
            )
        if self._accounts.are_known:
            await self._check_account(request)
        has_token = await self._has_token(request)
        if not has_token and (self._requires_token or is_token_required(self._data)):
            raise Unauthenticated(
                "This server requires its token. Run `threadkeep open` to open the page with it, or "
                "`threadkeep token` to print it. Programs send it, or an API key, as "
                "`Authorization: Bearer …`."
            )
        return User(LOCAL, UserRole.ADMIN, may_run_programs=has_token)

    async def _check_account(self, request: HTTPConnection) -> None:
        client, server = request.scope.get("client"), request.scope.get("server")
        account = await self._accounts.of(client, server) if client and server else None
        if account not in {os.geteuid(), ROOT}:
            raise Forbidden(
                "Only the account that runs this server can use it, because sign-in is off. The operator "
                f"can let others sign in with {WAYS}."
            )

    async def _has_token(self, request: HTTPConnection) -> bool:
        given = bearer_token(request)
        if given is None:
            return False
        if self._token is None:
            self._token = await asyncio.to_thread(make_token, self._data)
        return secrets.compare_digest(given, self._token)


class SessionsOnly(SignInMethod):
    """People sign in with sessions and programs with keys; there are no other tokens."""

    async def user(self, request: HTTPConnection) -> User:
        raise Unauthenticated("Sign in on the page; programs send an API key as `Authorization: Bearer …`.")


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
                return signed_in_user(user.id, user.role)
            case str() as name:
                return signed_in_user(name, UserRole.USER)
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
