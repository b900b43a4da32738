"""What a provider says about itself: fetched when it is first needed, so that it may start after us."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2

from threadkeep.domain.sign_in.identity import SignInProblem
from threadkeep.http.sign_in.openid.calls import Reply, call

KNOWN_FOR_S = 3600
RETRY_AFTER_S = 2
PATH = "/.well-known/openid-configuration"
OFFLINE_ACCESS = "offline_access"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Where a provider's parts are, and what they can do."""

    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None
    jwks_uri: str
    secret_in_form: bool
    """Whether a client's secret goes into the form instead of a header."""
    offers_refresh: bool
    """Whether it gives refresh tokens for the scope `offline_access`."""
    names_issuer: bool
    """Whether every answer names its issuer (RFC 9207)."""


class Discovery:
    """One provider's metadata, kept for an hour; while the provider is down, what it said last."""

    def __init__(
        self, issuer: str, client: httpx2.AsyncClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._client = client
        self._clock = clock
        self._known: Metadata | None = None
        self._next_fetch = float("-inf")
        self._problem: SignInProblem | None = None
        self._fetching = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """What is known; SignInProblem if nothing is."""
        if self._clock() >= self._next_fetch:
            async with self._fetching:
                if self._clock() >= self._next_fetch:  # nobody else has while we waited
                    await self._fetch()
        if self._known is None:
            raise self._problem or SignInProblem("unreachable")
        return self._known

    async def _fetch(self) -> None:
        # At once, for those who wait: also if whoever fetches goes away.
        self._next_fetch = self._clock() + RETRY_AFTER_S
        try:
            reply = await call(self._client, "GET", f"{self._issuer.rstrip('/')}{PATH}")
            self._known = _metadata(reply, self._issuer)
        except SignInProblem as exc:
            self._problem = SignInProblem(exc.problem, exc.detail)
        else:
            self._next_fetch = self._clock() + KNOWN_FOR_S


def _metadata(reply: Reply, issuer: str) -> Metadata:
    if reply.status != 200:
        raise SignInProblem("invalid", f"There is no provider at {issuer}: status {reply.status}.")
    if reply.text("issuer") != issuer:
        raise SignInProblem("invalid", f"What it calls itself is not {issuer}, to the letter.")
    methods = _texts(reply.fields.get("token_endpoint_auth_methods_supported"))
    return Metadata(
        authorization_endpoint=_required(reply, "authorization_endpoint", issuer),
        token_endpoint=_required(reply, "token_endpoint", issuer),
        userinfo_endpoint=_address(reply, "userinfo_endpoint", issuer),
        jwks_uri=_required(reply, "jwks_uri", issuer),
        secret_in_form="client_secret_post" in methods and "client_secret_basic" not in methods,
        offers_refresh=OFFLINE_ACCESS in _texts(reply.fields.get("scopes_supported")),
        names_issuer=reply.fields.get("authorization_response_iss_parameter_supported") is True,
    )


def _required(reply: Reply, name: str, issuer: str) -> str:
    if (address := _address(reply, name, issuer)) is None:
        raise SignInProblem("invalid", f"It names no safe address as `{name}`.")
    return address


def _address(reply: Reply, name: str, issuer: str) -> str | None:
    """An address in the metadata: as safe as the issuer's."""
    try:
        parts = urlsplit(reply.text(name) or "")
    except ValueError:
        return None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and issuer.startswith("http:"))
    return parts.geturl() if is_safe and parts.hostname and not parts.fragment else None


def _texts(value: object) -> list[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [it for it in items if isinstance(it, str)]
