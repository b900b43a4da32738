"""Signing in: who sends a request."""

import asyncio
import inspect
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import httpx
import jwt
import msgspec
from starlette.requests import HTTPConnection

from threadkeep.domain.errors import InvalidRequest, SettingsError, SignInUnavailable, Unauthenticated
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.settings import Settings

LEEWAY_S = 30
KEYS_LIVE_S = 600
FETCH_PAUSE_S = 10  # forged `kid`s cannot make us hammer the provider
FIRST_FETCH_PAUSE_S = 1  # while nobody can sign in yet, a provider that starts late is found soon
FETCH_TIMEOUT_S = 5
MOST_KEY_SET_BYTES = 1024 * 1024

# A token never chooses how it is checked: a secret and a public key have no algorithm in common.
SECRET_ALGORITHMS = ["HS256"]
KEY_SET_ALGORITHMS = ["RS256", "ES256"]

_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")
_NOT_OURS = "The token was not signed by a key that this server trusts."
_REASONS: list[tuple[type[jwt.PyJWTError], str]] = [
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token is meant for another audience."),
    (jwt.InvalidIssuerError, "The token comes from another issuer."),
    (jwt.InvalidSignatureError, _NOT_OURS),
    (jwt.InvalidAlgorithmError, _NOT_OURS),
    (jwt.InvalidKeyError, _NOT_OURS),
    (jwt.PyJWTError, "The token is malformed."),
]
_log = logging.getLogger(__name__)
_jwt = jwt.PyJWT({"require": ["exp", "sub"], "enforce_minimum_key_length": True})

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
    issuer, audience = settings.jwt_issuer, settings.jwt_audience
    if settings.jwt_secret:
        return SharedSecretSignIn(settings.jwt_secret, issuer, audience)
    if settings.jwks_url:
        return KeySetSignIn(settings.jwks_url, issuer, audience)
    return LocalSignIn()


class LocalSignIn(SignIn):
    """Without configuration everyone on this machine is the user `local`, whatever the request says."""

    async def user(self, request: HTTPConnection) -> User:
        return User(UserId("local"), UserRole.ADMIN)


class HostSignIn(SignIn):
    """The host application knows its own users."""

    def __init__(self, current_user: CurrentUser) -> None:
        # `object`: not every host checks types, and a number must not become a user nobody knows.
        self._current_user: Callable[[Any], object] = current_user

    async def user(self, request: HTTPConnection) -> User:
        answer = self._current_user(request)
        match await answer if inspect.isawaitable(answer) else answer:
            case None:
                raise Unauthenticated("Nobody is signed in.")
            case User() as user:
                return _checked(user.id, user.role)
            case str() as name:
                return _checked(name, UserRole.USER)
            case other:
                raise TypeError(f"current_user must return a str, a User or None, not {type(other).__name__}")


class SharedSecretSignIn(SignIn):
    """Tokens signed with a secret that the issuer shares with us."""

    def __init__(self, secret: str, issuer: str | None = None, audience: str | None = None) -> None:
        # A secret that cannot sign is found here rather than by every request.
        issue_token(secret, User(UserId("local")), 0)
        self._secret, self._issuer, self._audience = secret, issuer, audience

    async def user(self, request: HTTPConnection) -> User:
        token = _required_token(request)
        return _token_user(token, self._secret, SECRET_ALGORITHMS, self._issuer, self._audience)


class KeySetSignIn(SignIn):
    """Tokens signed by a provider that publishes its keys (OIDC)."""

    def __init__(
        self,
        url: str,
        issuer: str | None = None,
        audience: str | None = None,
        client: httpx.AsyncClient | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._issuer, self._audience, self._clock = url, issuer, audience, clock
        self._client, self._owns_client = client or httpx.AsyncClient(), client is None
        self._keys: list[jwt.PyJWK] = []
        self._fresh_until = self._next_fetch = self._failed_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def user(self, request: HTTPConnection) -> User:
        token = _required_token(request)
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as exc:
            raise _refused(exc) from None
        if (algorithm := header.get("alg")) not in KEY_SET_ALGORITHMS:
            raise Unauthenticated(_NOT_OURS)
        key = await self._key(header.get("kid"), algorithm)
        return _token_user(token, key, KEY_SET_ALGORITHMS, self._issuer, self._audience)

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})
        if self._owns_client:
            await self._client.aclose()

    async def _key(self, kid: str | None, algorithm: str) -> jwt.PyJWK:
        key, now = self._find(kid, algorithm), self._clock()
        stale = now >= self._fresh_until
        idle = self._fetching is None or self._fetching.done()
        if (key is None or stale) and idle and now >= self._next_fetch:
            self._next_fetch = now + FETCH_PAUSE_S
            # A task of its own: when the request that began it is cancelled, others still wait for it.
            self._fetching = asyncio.create_task(self._fetch())
        # Who has a key waits only to learn whether it was revoked, and not for a provider known to be away.
        away = self._failed_at >= self._fresh_until
        if self._fetching is not None and (key is None or (stale and not away)):
            await asyncio.wait({self._fetching})
            key = self._find(kid, algorithm)
        if not self._keys:
            raise SignInUnavailable("The sign-in provider cannot be reached; try again in a moment.")
        if key is None:
            raise Unauthenticated(_NOT_OURS)
        return key

    def _find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        fitting = [key for key in self._keys if key.algorithm_name == algorithm]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.key_id == kid), None)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                self._keys = _usable_keys(await self._download())
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError) as exc:
            _log.warning("The sign-in provider's keys could not be fetched: %r", exc)
            self._failed_at = self._clock()
            self._next_fetch = self._failed_at + (FETCH_PAUSE_S if self._keys else FIRST_FETCH_PAUSE_S)
        else:
            self._fresh_until = self._clock() + KEYS_LIVE_S

    async def _download(self) -> bytes:
        # Asked for uncompressed, so that few bytes do not unfold into many.
        async with self._client.stream("GET", self._url, headers={"Accept-Encoding": "identity"}) as answer:
            if answer.status_code != 200:
                raise ValueError(f"status {answer.status_code}")
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > MOST_KEY_SET_BYTES:
                    raise ValueError(f"more than {MOST_KEY_SET_BYTES} bytes")
            return bytes(body)


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token of `Authorization: Bearer …`, if there is such a header."""
    given = connection.headers.getlist("authorization")
    if not given:
        return None
    found = _BEARER.fullmatch(given[0].strip())
    if found is None or len(given) > 1:
        raise Unauthenticated("Send exactly one header of the form `Authorization: Bearer <token>`.")
    return found[1]


def issue_token(
    secret: str, user: User, ttl_s: int, *, issuer: str | None = None, audience: str | None = None
) -> str:
    """A token that signs `user` in for `ttl_s` seconds where the secret is shared."""
    now = int(time.time())
    claims = {"sub": user.id, "role": user.role.value, "iat": now, "exp": now + ttl_s}
    claims |= {name: value for name, value in (("iss", issuer), ("aud", audience)) if value}
    try:
        return _jwt.encode(claims, secret, algorithm="HS256")
    except (jwt.PyJWTError, ValueError):  # not chained: the cause could show the secret
        raise SettingsError(
            "THREADKEEP_JWT_SECRET must be a plain text of at least 32 characters, not a key file."
        ) from None


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def _usable_keys(document: bytes) -> list[jwt.PyJWK]:
    """The keys that can check a signature; a document without any counts as broken."""
    usable: list[jwt.PyJWK] = []
    for entry in msgspec.json.decode(document, type=_KeySet).keys:
        # A private key (`d`) that is published proves nothing about who signed with it.
        if entry.get("use", "sig") != "sig" or "d" in entry:
            continue
        try:
            key = jwt.PyJWK(entry)
        except (jwt.PyJWTError, LookupError, TypeError, ValueError):
            continue  # a kind of key that we do not know must not hide the others
        if key.algorithm_name in KEY_SET_ALGORITHMS:
            usable.append(key)
    if not usable:
        raise ValueError("the document has no usable key")
    return usable


def _required_token(request: HTTPConnection) -> str:
    if token := bearer_token(request):
        return token
    raise Unauthenticated("Sign in: the header `Authorization: Bearer <token>` is missing.")


def _token_user(
    token: str, key: jwt.PyJWK | str, algorithms: list[str], issuer: str | None, audience: str | None
) -> User:
    try:
        claims = _jwt.decode(
            token,
            key,
            algorithms,
            # PyJWT refuses every `aud` where none is expected; who expects none takes any.
            {"verify_aud": bool(audience)},
            issuer=issuer or None,
            audience=audience,
            leeway=LEEWAY_S,
        )
    except jwt.PyJWTError as exc:
        raise _refused(exc) from None
    return _checked(claims["sub"], UserRole.ADMIN if claims.get("role") == "admin" else UserRole.USER)


def _refused(error: jwt.PyJWTError) -> Unauthenticated:
    # Our own words, and raised unchained: PyJWT's quote parts of the token, which must not reach a log.
    if isinstance(error, jwt.MissingRequiredClaimError):
        return Unauthenticated(f"The token lacks the claim `{error.claim}`.")
    return Unauthenticated(next(reason for kind, reason in _REASONS if isinstance(error, kind)))


def _checked(name: str, role: UserRole) -> User:
    try:
        return User(user_id(name), role)
    except InvalidRequest as exc:
        raise Unauthenticated(f"The signed-in user has no valid id: {exc.message}") from None
