"""What a provider says of a person, as claims."""

from collections.abc import Mapping
from typing import Any, cast

from threadkeep.domain.sign_in.identity import MOST_NAME_CHARACTERS, Identity
from threadkeep.domain.user import claim_in

_NAMES = ("name", "preferred_username", "email")


def identity_in(claims: Mapping[str, Any], groups_claim: str) -> Identity:
    """The person whom verified claims describe."""
    email = claims.get("email")
    # Some providers write it as a text.
    is_verified = claims.get("email_verified") in (True, "true")
    return Identity(
        subject=claims["sub"],
        name=next((it for it in (_line(claims.get(name)) for name in _NAMES) if it), None),
        email=email if isinstance(email, str) and "@" in email and is_verified else None,
        hosted_domain=_line(claims.get("hd")),
        groups=tuple(_texts(claim_in(claims, groups_claim))),
    )


def _line(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return "".join(it for it in value[:1000] if it.isprintable()).strip()[:MOST_NAME_CHARACTERS] or None


def _texts(value: object) -> list[str]:
    several = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [it for it in several if isinstance(it, str) and it]
