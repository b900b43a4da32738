"""Access tokens: checks and creates them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import jwt

from threadkeep.domain.errors import SettingsError, Unauthenticated
from threadkeep.domain.user import AdminClaim, User, UserRole, signed_in_user
from threadkeep.settings import Settings

LEEWAY_S = 30
MOST_REMEMBERED = 1024

# A token can't choose how it is checked: secrets and public keys share no algorithm.
SECRET_ALGORITHMS = ["HS256"]
KEY_SET_ALGORITHMS = ["RS256", "ES256"]

NOT_OURS = "The token is not signed by a key this server trusts."
_REASONS: list[tuple[type[jwt.PyJWTError], str]] = [
    (jwt.ExpiredSignatureError, "The token has expired. Sign in again."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token is for another audience: its `aud` isn't THREADKEEP_JWT_AUDIENCE."),
    (jwt.InvalidIssuerError, "The token comes from another issuer: its `iss` isn't THREADKEEP_JWT_ISSUER."),
    (jwt.InvalidSignatureError, NOT_OURS),
    (jwt.InvalidAlgorithmError, NOT_OURS),
    (jwt.InvalidKeyError, NOT_OURS),
    (jwt.PyJWTError, "The token is malformed."),
]
_jwt = jwt.PyJWT({"require": ["exp", "sub"], "enforce_minimum_key_length": True})


USUAL_ADMIN_CLAIM = AdminClaim("role", "admin")


@dataclass(frozen=True, slots=True)
class Expected:
    """The claims that a token must have, and the one that makes it an admin's."""

    issuer: str | None = None
    audience: str | None = None
    admin: AdminClaim | None = USUAL_ADMIN_CLAIM


def expected_of(settings: Settings) -> Expected:
    """What the operator expects of a token."""
    return Expected(settings.jwt_issuer, settings.jwt_audience, settings.admin)


def issue_token(secret: str, user: User, ttl_s: int, expected: Expected | None = None) -> str:
    """A token that signs `user` in for `ttl_s` seconds, for sign-in with a shared secret."""
    now = int(time.time())
    expected = expected or Expected()
    claims = {"sub": user.id, "iat": now, "exp": now + ttl_s}
    claims |= {name: it for name, it in (("iss", expected.issuer), ("aud", expected.audience)) if it}
    if user.is_admin:
        if expected.admin is None:
            raise SettingsError("THREADKEEP_ADMIN_CLAIM is `off`, so no token grants the admin role.")
        claims.setdefault(expected.admin.name, expected.admin.value)
    try:
        return _jwt.encode(claims, secret, algorithm="HS256")
    except (jwt.PyJWTError, ValueError):  # not chained: the cause could show the secret
        raise SettingsError(
            "THREADKEEP_JWT_SECRET must be plain text of at least 32 characters, not a key file."
        ) from None


def token_user(token: str, key: jwt.PyJWK | str, algorithms: Sequence[str], expected: Expected) -> User:
    """The user that a token signs in; checks every claim and the signature."""
    user, expires_at = _checked(token, key, tuple(algorithms), expected)
    if expires_at <= time.time() - LEEWAY_S:
        raise refused(jwt.ExpiredSignatureError())
    return user


# A client sends its token with every request, and nothing about it changes except that it expires.
@lru_cache(maxsize=MOST_REMEMBERED)
def _checked(
    token: str, key: jwt.PyJWK | str, algorithms: tuple[str, ...], expected: Expected
) -> tuple[User, int]:
    """A token's user, and when it expires."""
    try:
        claims = _jwt.decode(
            token,
            key,
            list(algorithms),
            # PyJWT refuses every `aud` if none is expected; we accept any then.
            {"verify_aud": bool(expected.audience)},
            issuer=expected.issuer or None,
            audience=expected.audience,
            leeway=LEEWAY_S,
        )
    except jwt.PyJWTError as exc:
        raise refused(exc) from None
    is_admin = expected.admin is not None and expected.admin.is_in(claims)
    user = signed_in_user(claims["sub"], UserRole.ADMIN if is_admin else UserRole.USER)
    issued_at = int(claims.get("iat", claims.get("nbf", 0))) * 1000
    return replace(user, token_issued_at=issued_at), int(claims["exp"])


def refused(error: jwt.PyJWTError) -> Unauthenticated:
    """Why a token is refused."""
    # Our own words, raised unchained: PyJWT's quote parts of the token, which must not reach a log.
    if isinstance(error, jwt.MissingRequiredClaimError):
        return Unauthenticated(f"The token is missing the claim `{error.claim}`.")
    return Unauthenticated(next(reason for kind, reason in _REASONS if isinstance(error, kind)))
