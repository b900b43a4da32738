"""One provider that speaks OpenID Connect: authorization code with PKCE, and refresh tokens."""

import base64
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx2

from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.identity import (
    Admission,
    GrantRefused,
    Identified,
    ProviderAnswer,
    SignInProblem,
)
from threadkeep.domain.user import claim_in
from threadkeep.http.sign_in.key_set import KeySet
from threadkeep.http.sign_in.openid.calls import Reply, call, error_code
from threadkeep.http.sign_in.openid.claims import identity_in
from threadkeep.http.sign_in.openid.discovery import Discovery, Metadata
from threadkeep.http.sign_in.openid.id_tokens import verified_claims
from threadkeep.ports.identity_providers import IdentityProvider
from threadkeep.settings.providers import GOOGLE, ProviderTable

MOST_CODE_CHARACTERS = 8192
DAY_S = 24 * 60 * 60

_DECLINED = {"access_denied", "login_required", "consent_required", "interaction_required"}
_BUSY = {"temporarily_unavailable", "server_error"}
# Google gives a refresh token only if it is asked like this.
_EXTRA = {GOOGLE: {"access_type": "offline"}}
_log = logging.getLogger("threadkeep.sign_in")


class OpenIdProvider(IdentityProvider):
    """A provider as the settings name it. Nothing is sent before somebody signs in."""

    def __init__(
        self,
        table: ProviderTable,
        secret: str | None,
        admission: Admission,
        redirect_uri: str,
        client: httpx2.AsyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._secret = secret
        self._admission = admission
        self._redirect_uri = redirect_uri
        self._client = client
        self._clock = clock
        self._discovery = Discovery(table.issuer, client, clock)
        self._keys: tuple[str, KeySet] | None = None

    @property
    def admission(self) -> Admission:
        return self._admission

    async def check(self) -> None:
        """Whether it responds, and is what the settings say."""
        await self._discovery.metadata()

    async def sign_in_url(self, *, state: str, verifier: str, nonce: str) -> str:
        metadata = await self._discovery.metadata()
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._table.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(self._table.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **_EXTRA.get(self._table.issuer, {}),
        }
        endpoint = metadata.authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def identify(self, answer: ProviderAnswer, *, verifier: str, nonce: str) -> Identified:
        metadata = await self._discovery.metadata()
        self._check_issuer(answer, metadata)
        code = answer.code
        if answer.error is not None or not code or len(code) > MOST_CODE_CHARACTERS:
            raise _declined(answer.error)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        reply = await self._ask_for_tokens(metadata, form)
        if reply.status != 200:
            _log.warning("a sign-in provider refuses to exchange its code: %s", reply.error)
            raise SignInProblem("expired" if reply.error == "invalid_grant" else "invalid")
        if (id_token := reply.text("id_token")) is None:
            _log.warning("a sign-in provider gives no ID token")
            raise SignInProblem("invalid")
        claims = await self._verified(metadata, id_token, nonce)
        return await self._identified(metadata, reply, claims)

    async def refresh(self, token: Secret, subject: str) -> Identified:
        metadata = await self._discovery.metadata()
        form = {"grant_type": "refresh_token", "refresh_token": token.reveal()}
        reply = await self._ask_for_tokens(metadata, form)
        if reply.status != 200:
            if reply.error == "invalid_grant":
                raise GrantRefused
            _log.warning("a sign-in provider refuses to refresh: %s", reply.error)
            raise SignInProblem("invalid")
        id_token = reply.text("id_token")
        claims = await self._verified(metadata, id_token, None) if id_token else {"sub": subject}
        if claims["sub"] != subject:
            _log.warning("a sign-in provider answers about another user")
            raise SignInProblem("invalid")
        if id_token is None and (metadata.userinfo_endpoint is None or reply.text("access_token") is None):
            return Identified(identity=None, refresh_token=_refresh_token(reply))
        return await self._identified(metadata, reply, claims)

    async def close(self) -> None:
        if self._keys is not None:
            await self._keys[1].close()
        await self._client.aclose()

    def _check_issuer(self, answer: ProviderAnswer, metadata: Metadata) -> None:
        """Whether an answer comes from here (RFC 9207): a provider could pass on another one's code."""
        if answer.issuer is None and metadata.names_issuer and answer.error is None:
            _log.warning("a sign-in provider's answer doesn't name its issuer, although it promises to")
            raise SignInProblem("invalid")
        if answer.issuer is not None and answer.issuer != self._table.issuer:
            raise SignInProblem("other_provider")

    async def _ask_for_tokens(self, metadata: Metadata, form: dict[str, str]) -> Reply:
        headers: dict[str, str] = {}
        client_id = self._table.client_id
        if self._secret is None:
            form["client_id"] = client_id
        elif metadata.secret_in_form:
            form |= {"client_id": client_id, "client_secret": self._secret}
        else:
            pair = f"{quote_plus(client_id)}:{quote_plus(self._secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return await call(self._client, "POST", metadata.token_endpoint, form=form, headers=headers)

    async def _verified(self, metadata: Metadata, id_token: str, nonce: str | None) -> Mapping[str, Any]:
        if self._keys is None or self._keys[0] != metadata.jwks_uri:
            old, self._keys = (
                self._keys,
                (metadata.jwks_uri, KeySet(metadata.jwks_uri, self._client, self._clock)),
            )
            if old is not None:
                await old[1].close()
        issuer, client_id = self._table.issuer, self._table.client_id
        return await verified_claims(id_token, self._keys[1], issuer=issuer, client_id=client_id, nonce=nonce)

    async def _identified(self, metadata: Metadata, reply: Reply, claims: Mapping[str, Any]) -> Identified:
        """Who the claims name; what they don't say, the provider says elsewhere."""
        access_token = reply.text("access_token")
        if metadata.userinfo_endpoint and access_token and not self._says_all(claims):
            headers = {"Authorization": f"Bearer {access_token}"}
            more = await call(self._client, "GET", metadata.userinfo_endpoint, headers=headers)
            if more.status != 200 or more.fields.get("sub") != claims["sub"]:
                _log.warning("a sign-in provider's userinfo doesn't count: status %d", more.status)
                raise SignInProblem("invalid")
            claims = {**more.fields, **claims}
        identity = identity_in(claims, self._table.groups_claim)
        return Identified(identity=identity, refresh_token=_refresh_token(reply))

    def _says_all(self, claims: Mapping[str, Any]) -> bool:
        wants_groups = self._table.admin_group or self._table.allowed_groups
        has_groups = claim_in(claims, self._table.groups_claim) is not None
        return (
            "name" in claims
            and (has_groups or not wants_groups)
            and ("email" in claims or not self._table.allowed_domains)
        )


def _declined(error: str | None) -> SignInProblem:
    """Why a provider sends a person back without a code."""
    if error in _DECLINED:
        return SignInProblem("denied")
    if error in _BUSY:
        return SignInProblem("unreachable")
    _log.warning("a sign-in provider refuses: %s", error_code(error))
    return SignInProblem("invalid")


def _refresh_token(reply: Reply) -> Secret | None:
    """The refresh token, unless it is over within a day: Keycloak says so of those without offline access."""
    token, ends_in = reply.text("refresh_token"), reply.fields.get("refresh_expires_in")
    is_short = isinstance(ends_in, int | float) and 0 < ends_in < DAY_S
    return None if token is None or is_short else Secret(token)
