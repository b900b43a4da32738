"""Sign people in: whose tokens are accepted, and who is an admin."""

from typing import Annotated

from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.domain.user import AdminClaim
from threadkeep.loopback import is_loopback
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

    def check_safe_to_listen(self) -> None:
        """Refuses to listen beyond loopback without sign-in."""
        if not self.signs_in and not is_loopback(self.host):
            raise SettingsError(
                f"Without sign-in, Threadkeep listens only on loopback, not on {self.host}. Set "
                "THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL first."
            )

    @property
    def signs_in(self) -> bool:
        """Whether users sign in; without sign-in, everyone with access is the user `local`."""
        return bool(self.jwt_secret or self.jwks_url)

    @property
    def issuer_url(self) -> str | None:
        """Where clients can get tokens: the issuer, if its name is a URL."""
        is_url = self.jwt_issuer is not None and self.jwt_issuer.startswith(("https://", "http://"))
        return self.jwt_issuer if self.signs_in and is_url else None

    @property
    def admin(self) -> AdminClaim | None:
        """The claim that makes a token an admin's; None if none does."""
        return AdminClaim.read(self.admin_claim)
