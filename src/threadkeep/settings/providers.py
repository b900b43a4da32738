"""Sign-in providers in the settings file: one table each, `[sign_in.NAME]`."""

import re
from collections.abc import Collection
from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import SettingsError
from threadkeep.domain.sign_in.identity import Admission
from threadkeep.domain.sign_in.session import SignInWay
from threadkeep.loopback import is_loopback
from threadkeep.settings.values import split_url

GOOGLE = "https://accounts.google.com"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_DOMAIN = re.compile(r"[^\s@/.]+(?:\.[^\s@/.]+)+")


class ProviderTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sign_in.NAME]` in the settings file: a provider that speaks OpenID Connect."""

    issuer: str
    client_id: Annotated[str, Meta(min_length=1)]
    client_secret: str | None = None
    client_secret_env: str | None = None
    """The variable that has the secret (sources.py)."""
    title: str | None = None
    """What the page's button says; by default, the name."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    admin_group: str | None = None
    allowed_groups: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    anyone: bool = False
    legacy_ids: bool = False

    def __repr__(self) -> str:
        return f"ProviderTable(issuer={self.issuer!r}, …)"

    def check(self, name: str) -> None:
        """Rejects what can't work, and what would let in people whom nobody meant."""
        where = f"[sign_in.{name}]"
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{where}: a provider's name has at most 32 lower-case letters, digits and hyphens, and "
                "begins with a letter. It is part of its users' ids, so it can't change later."
            )
        issuer = split_url(self.issuer, "SIGN_IN")
        is_near = issuer.scheme == "http" and is_loopback(issuer.hostname or "")
        if not issuer.hostname or issuer.query or issuer.fragment or issuer.username is not None:
            raise SettingsError(f"{where}: `issuer` must be an address such as https://id.example.")
        if issuer.scheme != "https" and not is_near:
            raise SettingsError(f"{where}: `issuer` must begin with https://. http:// is only for localhost.")
        if "openid" not in self.scopes:
            raise SettingsError(f"{where}: `scopes` must contain openid.")
        if not (self.allowed_groups or self.allowed_domains or self.anyone):
            raise SettingsError(
                f"{where} must say who may sign in: `allowed_groups`, `allowed_domains`, or `anyone = true` "
                "for everybody who has an account with this provider."
            )
        if self.anyone and (self.allowed_groups or self.allowed_domains):
            raise SettingsError(
                f"{where}: `anyone = true` contradicts `allowed_groups` and `allowed_domains`. Remove one."
            )
        if wrong := next((it for it in self.allowed_domains if not _DOMAIN.fullmatch(it)), None):
            raise SettingsError(
                f"{where}: {wrong!r} in `allowed_domains` is not a domain such as example.com."
            )

    def secret(self, name: str) -> str | None:
        """What proves to the provider that it is us, if anything; only a server needs it."""
        if self.client_secret_env and not self.client_secret:
            variable = self.client_secret_env
            raise SettingsError(
                f"[sign_in.{name}] needs its client secret in {variable}, or in a file that {variable}_FILE "
                "names."
            )
        return self.client_secret

    def admission(self, name: str, providers: Collection[str]) -> Admission:
        """Who may come in."""
        return Admission(
            provider=name,
            admin_group=self.admin_group,
            allowed_groups=frozenset(self.allowed_groups),
            allowed_domains=frozenset(it.lower() for it in self.allowed_domains),
            by_hosted_domain=self.issuer == GOOGLE,
            legacy_ids=self.legacy_ids,
            other_providers=tuple(it for it in providers if it != name),
        )

    def way(self, name: str, public_url: str) -> SignInWay:
        """Its button on the page."""
        return SignInWay(name, self.title or name, f"{public_url}/oauth/sign-in/{name}/start")
