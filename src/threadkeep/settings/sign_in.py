"""Sign people in: whose tokens are accepted, how people sign in with a browser, and who is an admin."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadkeep.domain.errors import InvalidRequest, SettingsError
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.domain.sign_in.session import SignInRules
from threadkeep.domain.user import AdminClaim
from threadkeep.loopback import is_loopback
from threadkeep.settings.providers import ProviderTable
from threadkeep.settings.reach import ReachSettings
from threadkeep.settings.values import Secret, split_url


class SignInSettings(ReachSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people sign in."""

    jwt_secret: Annotated[
        Secret, Meta(description="Sign-in with HS256 tokens: the shared secret, at least 32 characters.")
    ] = None
    jwks_url: Annotated[
        str | None, Meta(description="Sign-in with RS256/ES256 tokens: the URL of the provider's keys.")
    ] = None
    jwt_issuer: Annotated[
        str | None, Meta(description="The required `iss` of a token; mandatory with JWKS_URL.")
    ] = None
    jwt_audience: Annotated[
        str | None, Meta(description="The required `aud` of a token; mandatory with JWKS_URL.")
    ] = None
    admin_claim: Annotated[
        str,
        Meta(
            description="The token claim and value that make a user an admin, such as role=admin or "
            "realm_access.roles=threadkeep-admin. With `off`, no token does."
        ),
    ] = "role=admin"
    require_token: Annotated[
        bool,
        Meta(
            description="If sign-in is off, require the data folder's token, which `threadkeep open` sends; "
            "same as --require-token."
        ),
    ] = False

    act_as_anyone: Annotated[
        bool,
        Meta(
            description="Whether admins can make keys that act for every user, not only for an application's "
            "own; for applications whose users also bring tokens."
        ),
    ] = False
    invitations: Annotated[
        Literal["on", "off"],
        Meta(description="Sign people in by invitations, which `threadkeep invite` and admins make."),
    ] = "off"
    public_url: Annotated[
        str | None,
        Meta(
            description="Where people open the web app, such as https://chat.example; mandatory for sign-in "
            "with a browser, except on localhost. Its name is accepted as if it were in ALLOWED_HOSTS."
        ),
    ] = None
    sign_in: Annotated[
        dict[str, ProviderTable],
        Meta(
            description="Providers with which people sign in; tables `[sign_in.NAME]` in the settings file. "
            "See docs/sign-in.md.",
            extra={"secret": True},
        ),
    ] = msgspec.field(default_factory=dict[str, ProviderTable])
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(
            description="Addresses or networks of the proxies whose X-Forwarded-For names a client's "
            "address; comma-separated."
        ),
    ] = ()

    def check_sign_in(self) -> None:
        """Rejects sign-in settings that would let in the wrong people."""
        if self.jwt_secret and self.jwks_url:
            raise SettingsError("Set either THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL, not both.")
        if self.jwt_secret and len(self.jwt_secret) < 32:
            raise SettingsError("THREADKEEP_JWT_SECRET needs at least 32 characters.")
        if self.jwks_url and split_url(self.jwks_url, "JWKS_URL").scheme not in {"http", "https"}:
            raise SettingsError("THREADKEEP_JWKS_URL must be an http(s) URL.")
        if self.jwks_url and not (self.jwt_issuer and self.jwt_audience):
            raise SettingsError(
                "THREADKEEP_JWKS_URL requires THREADKEEP_JWT_ISSUER and THREADKEEP_JWT_AUDIENCE: a "
                "provider signs the tokens of all its applications with the same keys, and Threadkeep must "
                "accept only its own."
            )
        if self.admin is None and self.admin_claim != "off":
            raise SettingsError(
                f"THREADKEEP_ADMIN_CLAIM: {self.admin_claim!r} is neither a claim such as role=admin "
                "nor `off`."
            )

        self._check_providers()
        self._check_sessions()

    def _check_providers(self) -> None:
        for name, table in self.sign_in.items():
            table.check(name)
        legacy = [name for name, table in self.sign_in.items() if table.legacy_ids]
        if len(legacy) > 1:
            raise SettingsError(
                f"[sign_in.{legacy[1]}]: only one provider can have `legacy_ids`, since two could give "
                "different people the same id."
            )
        if legacy and self.takes_tokens and self.jwt_issuer != self.sign_in[legacy[0]].issuer:
            raise SettingsError(
                f"[sign_in.{legacy[0]}]: `legacy_ids` can't be combined with tokens of another issuer, who "
                "could give somebody else the same id. THREADKEEP_JWT_ISSUER must be the provider's `issuer`."
            )

    def _check_sessions(self) -> None:
        """Reads what sessions need; refuses what would give them to others."""
        rules = self.sign_in_rules
        if rules.public_url is not None:
            url = rules.public_url
            if not url.is_secure and not is_loopback(url.host):
                raise SettingsError(
                    "THREADKEEP_PUBLIC_URL must begin with https://: a sign-in that is sent without TLS can "
                    "be stolen. http:// is only for localhost."
                )
        elif self.has_sessions:
            raise SettingsError(
                "Sign-in with a browser requires THREADKEEP_PUBLIC_URL, the address at which people open the "
                "page, such as https://chat.example."
            )

    def check_safe_to_listen(self) -> None:
        """Refuses to listen beyond loopback without sign-in."""
        if not self.signs_in and not is_loopback(self.host):
            raise SettingsError(
                f"Without sign-in, Threadkeep listens only on loopback, not on {self.host}. Turn on "
                "sign-in first: THREADKEEP_INVITATIONS=on or a table [sign_in.NAME] for people, or "
                "THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL."
            )

    @property
    def signs_in(self) -> bool:
        """Whether users sign in; without sign-in, everyone with access is the user `local`."""
        return self.takes_tokens or self.has_sessions

    @property
    def takes_tokens(self) -> bool:
        """Whether an issuer's bearer tokens sign users in."""
        return bool(self.jwt_secret or self.jwks_url)

    @property
    def has_sessions(self) -> bool:
        """Whether people sign in with a browser."""
        return self.invitations == "on" or bool(self.sign_in)

    @property
    def sign_in_rules(self) -> SignInRules:
        """How people sign in with a browser."""
        page = self._page_url if self.has_sessions else None
        return SignInRules(
            public_url=page,
            invitations=self.invitations == "on",
            tokens=self.takes_tokens,
            ways=tuple(it.way(name, page.text) for name, it in self.sign_in.items()) if page else (),
            trusted_proxies=tuple(_network(it) for it in self.trusted_proxies),
        )

    @property
    def _page_url(self) -> PublicUrl | None:
        """Where people open the page; by default on this machine, if the server listens nowhere else."""
        usual = f"http://localhost:{self.port}" if is_loopback(self.host) and self.port else None
        text = self.public_url or usual
        try:
            return None if text is None else PublicUrl.read(text)
        except InvalidRequest as exc:
            raise SettingsError(f"THREADKEEP_PUBLIC_URL: {exc.message}.") from None

    @property
    def issuer_url(self) -> str | None:
        """Where clients can get tokens: the issuer, if its name is a URL."""
        is_url = self.jwt_issuer is not None and self.jwt_issuer.startswith(("https://", "http://"))
        return self.jwt_issuer if self.takes_tokens and is_url else None

    @property
    def admin(self) -> AdminClaim | None:
        """The claim that makes a token an admin's; None if none does."""
        return AdminClaim.read(self.admin_claim)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as exc:
        raise SettingsError(
            f"THREADKEEP_TRUSTED_PROXIES: {text!r} is neither an address nor a network such as 10.0.0.0/8."
        ) from exc
