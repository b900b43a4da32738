"""Where a JSON schema from outside meets a value."""

from collections.abc import Mapping
from typing import Any, Protocol

from threadkeep.domain.ids import UserId

NOT_CHECKED = (
    "This can't be checked against the tool's schema, because that takes too long or too much memory. "
    "Send less, or simplify the schema."
)


class Schemas(Protocol):
    """Checks values against schemas that strangers wrote."""

    async def problem(self, user_id: UserId, schema: Mapping[str, Any], value: Any) -> str | None:
        """Where a user's value doesn't match a schema, in words that help to fix it; None if it does.

        A broken schema matches everything. A check that needs too much is `NOT_CHECKED`, and nobody waits
        for it but its user.
        """
        ...
