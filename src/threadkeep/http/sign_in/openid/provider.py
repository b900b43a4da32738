"""One provider that speaks OpenID Connect: authorization code with PKCE, and refresh tokens."""

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx2

from threadkeep.domain.errors import SignInUnavailable, Unauthenticated
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.identity import (
    Admission,
    GrantRefused,
    Identified,
    ProviderAnswer,
    SignInProblem,
    Unconfirmed,
)
from threadkeep.domain.user import claim_in
from threadkeep.http.sign_in.key_set import KeySet
from threadkeep.http.sign_in.openid.calls import Reply, call, error_code
from threadkeep.http.sign_in.openid.claims import identity_in
from threadkeep.http.sign_in.openid.discovery import OFFLINE_ACCESS, Discovery, Metadata
from threadkeep.http.sign_in.openid.id_tokens import verified_claims
from threadkeep.ports.identity_providers import IdentityProvider
from threadkeep.settings.providers import GOOGLE, ProviderTable

MOST_CODE_CHARACTERS = 8192
DAY_S = 24 * 60 * 60

_DECLINED = {"access_denied", "login_required", "consent_required", "interaction_required"}
_BUSY = {"temporarily_unavailable", "server_error"}
# Google gives a refresh token only if it is asked like this.
_EXTRA = {GOOGLE: {"access_type": "offline"}}


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
        self.issuer, self.redirect_uri = table.issuer, redirect_uri
        self._client = client
        self._clock = clock
        self._discovery = Discovery(table.issuer, client, clock)
        self._keys: tuple[str, KeySet] | None = None

    @property
    def admission(self) -> Admission:
        return self._admission

    async def check(self) -> None:
        """Whether it responds, and is what the settings say; SignInProblem if not."""
        keys = await self._key_set(await self._discovery.metadata())
        try:
            await keys.key(None, "RS256")
        except SignInUnavailable:
            raise SignInProblem("unreachable", "Its keys can't be fetched.") from None
        except Unauthenticated:
            pass  # it has several

    async def leaves_refresh_tokens(self) -> bool:
        """Whether it offers refresh tokens that the settings don't ask for."""
        metadata = await self._discovery.metadata()
        return metadata.offers_refresh and OFFLINE_ACCESS not in self._table.scopes

    async def sign_in_url(self, *, state: str, verifier: str, nonce: str) -> str:
        metadata = await self._discovery.metadata()
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._table.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(self._table.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **_EXTRA.get(self.issuer, {}),
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
            "redirect_uri": self.redirect_uri,
            "code_verifier": verifier,
        }
        reply = await self._ask_for_tokens(metadata, form)
        if reply.status != 200:
            is_late = reply.error == "invalid_grant"
            raise SignInProblem("expired" if is_late else "invalid", f"It gives no token: {reply.error}.")
        if (id_token := reply.text("id_token")) is None:
            raise SignInProblem("invalid", "It gives no ID token.")
        claims = await self._verified(metadata, id_token, nonce)
        return await self._identified(metadata, reply, claims)

    async def refresh(self, token: Secret, subject: str) -> Identified:
        metadata = await self._discovery.metadata()
        form = {"grant_type": "refresh_token", "refresh_token": token.reveal()}
        reply = await self._ask_for_tokens(metadata, form)
        if reply.status != 200:
            if reply.error == "invalid_grant":
                raise GrantRefused
            raise SignInProblem("invalid", f"It doesn't refresh a token: {reply.error}.")
        try:
            return await self._refreshed(metadata, reply, subject)
        except SignInProblem as exc:
            raise Unconfirmed(exc, _refresh_token(reply)) from None

    async def close(self) -> None:
        if self._keys is not None:
            await self._keys[1].close()
        await self._client.aclose()

    async def _refreshed(self, metadata: Metadata, reply: Reply, subject: str) -> Identified:
        id_token = reply.text("id_token")
        claims = await self._verified(metadata, id_token, None) if id_token else {"sub": subject}
        if claims["sub"] != subject:
            raise SignInProblem("invalid", "It answers about another user.")
        if id_token is None and (metadata.userinfo_endpoint is None or reply.text("access_token") is None):
            return Identified(identity=None, refresh_token=_refresh_token(reply))
        return await self._identified(metadata, reply, claims)

    def _check_issuer(self, answer: ProviderAnswer, metadata: Metadata) -> None:
        """Whether an answer comes from here (RFC 9207): a provider could pass on another one's code."""
        if answer.issuer is None and metadata.names_issuer and answer.error is None:
            raise SignInProblem("invalid", "Its answer doesn't name its issuer, although it promises to.")
        if answer.issuer is not None and answer.issuer != self.issuer:
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
        keys = await self._key_set(metadata)
        issuer, client_id = self.issuer, self._table.client_id
        return await verified_claims(id_token, keys, issuer=issuer, client_id=client_id, nonce=nonce)

    async def _key_set(self, metadata: Metadata) -> KeySet:
        before = self._keys
        if before is not None and before[0] == metadata.jwks_uri:
            return before[1]
        keys = KeySet(metadata.jwks_uri, self._client, self._clock)
        self._keys = metadata.jwks_uri, keys
        if before is not None:
            await before[1].close()
        return keys

    async def _identified(self, metadata: Metadata, reply: Reply, claims: Mapping[str, Any]) -> Identified:
        """Who the claims name; what they don't say, the provider says elsewhere."""
        access_token = reply.text("access_token")
        if metadata.userinfo_endpoint and access_token and not self._says_all(claims):
            headers = {"Authorization": f"Bearer {access_token}"}
            more = await call(self._client, "GET", metadata.userinfo_endpoint, headers=headers)
            if more.status != 200 or more.fields.get("sub") != claims["sub"]:
                raise SignInProblem("invalid", f"Its userinfo doesn't count: status {more.status}.")
            if "email_verified" not in claims:  # of which address, only one source can say
                claims = {name: value for name, value in claims.items() if name != "email"}
            claims = {**more.fields, **claims}
        identity = identity_in(claims, self._table.groups_claim)
        return Identified(identity=identity, refresh_token=_refresh_token(reply))

    def _says_all(self, claims: Mapping[str, Any]) -> bool:
        wants_groups = self._table.admin_group or self._table.allowed_groups
        has_groups = claim_in(claims, self._table.groups_claim) is not None
        return (
            "name" in claims
            and (has_groups or not wants_groups)
            and ({"email", "email_verified"} <= claims.keys() or not self._table.allowed_domains)
        )


def _declined(error: str | None) -> SignInProblem:
    """Why a provider sends a person back without a code."""
    if error in _DECLINED:
        return SignInProblem("denied")
    if error in _BUSY:
        return SignInProblem("unreachable")
    return SignInProblem("invalid", f"It sends people back with an error: {error_code(error)}.")


def _refresh_token(reply: Reply) -> Secret | None:
    """The refresh token, unless it is over within a day: Keycloak says so of those without offline access."""
    token, ends_in = reply.text("refresh_token"), reply.fields.get("refresh_expires_in")
    is_short = isinstance(ends_in, int | float) and 0 < ends_in < DAY_S
    return None if token is None or is_short else Secret(token)
