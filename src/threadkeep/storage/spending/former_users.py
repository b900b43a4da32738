"""What is left of the id of a deleted user."""

import hmac

from threadkeep.domain.ids import UserId


def former_name(key: bytes, user_id: UserId) -> str:
    """A keyed hash of a user's id: enough to recognize it, not to recover it."""
    return hmac.digest(key, b"deleted user\n" + user_id.encode(), "sha256").hex()
