"""Acting keys: an application's server names, with each request, which of its users it asks for.

The user `42` of a key with the realm `shop` is our user `shop:42`. With an empty realm it is `42` itself.
"""

import re
from collections.abc import Collection, Sequence
from urllib.parse import unquote_to_bytes

from threadkeep.domain.errors import Forbidden, InvalidRequest, UserRequired
from threadkeep.domain.ids import UserId
from threadkeep.domain.text import is_blank
from threadkeep.domain.user import MOST_USER_ID_CHARACTERS, user_id

USER_HEADER = "Threadkeep-User"
RESERVED_REALMS = ("invited", "guest", "local")
"""How the ids of users begin who come in another way."""

_REALM = re.compile(r"[a-z][a-z0-9-]{0,31}")
_ENCODED = re.compile(r"(?:[ -$&-~]|%[0-9A-Fa-f]{2})*")
# A character is up to four bytes, and a byte is three characters when encoded.
_MOST_ENCODED = MOST_USER_ID_CHARACTERS * 4 * 3


def check_realm(realm: str, *, anyone: bool, taken: Collection[str]) -> None:
    """Refuses a realm that isn't one, or whose users could be taken for others'.

    `anyone` says whether the operator allows the empty one; `taken` are the names of sign-in providers.
    """
    param = "actAs.realm"
    if not realm:
        if not anyone:
            raise InvalidRequest(
                "Without a realm, a key acts for every user of this server. The operator can allow this with "
                "THREADKEEP_ACT_AS_ANYONE=true. Otherwise name a realm, such as `shop`.",
                param=param,
            )
        return
    if not _REALM.fullmatch(realm):
        raise InvalidRequest(
            "A realm begins with a lowercase letter, and has at most 32 lowercase letters, digits and `-`.",
            param=param,
        )
    if realm in RESERVED_REALMS or realm in taken:
        raise InvalidRequest(
            f"The realm `{realm}` is taken by users who sign in themselves. Choose another.", param=param
        )


def acted_for(realm: str, headers: Sequence[str]) -> UserId:
    """The user whom the values of the header name; the same name is always the same user."""
    if len(headers) > 1:
        raise _unnamed("appears more than once. Send it once.")
    if not headers or not headers[0].strip():
        raise _unnamed("is missing: this API key acts for an application's users. Name one in it.")
    given = headers[0].strip()
    if len(given) > _MOST_ENCODED or not _ENCODED.fullmatch(given):
        raise _unnamed("must be percent-encoded UTF-8, such as `J%C3%BCrgen`.")
    try:
        name = unquote_to_bytes(given).decode()
    except UnicodeDecodeError:
        raise _unnamed("isn't UTF-8 when its percent-encoding is undone.") from None
    # Before the realm hides that nothing is left.
    if is_blank(name):
        raise _unnamed("is empty. Name a user in it.")
    try:
        return user_id(f"{realm}:{name}" if realm else name)
    except InvalidRequest as exc:
        raise _unnamed(f"names no user. {exc.message}") from None


def check_unnamed(headers: Sequence[str]) -> None:
    """Refuses the header where it would be ignored: what is meant for one user would be another's."""
    if headers:
        raise Forbidden(
            f"Only an API key that an admin made with `actAs` can send {USER_HEADER}. Use such a key, or "
            "leave the header out.",
            param=USER_HEADER,
        )


def _unnamed(what: str) -> UserRequired:
    return UserRequired(f"The header {USER_HEADER} {what}", param=USER_HEADER)
