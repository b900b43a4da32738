"""Where the users are kept of whom we know."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from threadkeep.domain.ids import ConversationId, UserId


class UserStore(Protocol):
    """The users we know of."""

    async def delete(self, user_id: UserId, now: int) -> Sequence[ConversationId] | None:
        """Removes a user and all that is theirs; tells which conversations, or None where nobody was known.

        Their agents that others talk to are emptied and hidden.
        """
        ...

    async def sweep(self, now: int) -> None:
        """Does the same with agents whose owner the host application has deleted from its own table."""
        ...

    def ids(self) -> AsyncIterator[UserId]:
        """Everyone whom we know of."""
        ...
