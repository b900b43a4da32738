"""Storage of known users."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId, ConversationId, UserId


@dataclass(frozen=True, slots=True)
class Purged:
    """What was deleted with a user and may have files to delete."""

    agent_ids: Sequence[AgentId]
    conversation_ids: Sequence[ConversationId]


class UserStore(Protocol):
    """The known users."""

    async def delete(self, user_id: UserId, now: int) -> Purged | None:
        """Removes a user with all their data; None if the user is unknown.

        Their agents that others talk to are emptied and hidden. Rows go in pieces, and the user can do
        nothing meanwhile; after a crash, `half_deleted` names the user, and another call goes on.
        """
        ...

    async def half_deleted(self) -> Sequence[UserId]:
        """Users whose deletion has begun but not ended."""
        ...

    async def deleted_at(self, user_id: UserId) -> int | None:
        """When a user of this id was last deleted; None if never."""
        ...

    async def meet(self, user_id: UserId, now: int) -> None:
        """Registers a user; Forbidden if the host application doesn't have this user."""
        ...

    async def instructions(self, user_id: UserId) -> str:
        """What the user tells every agent."""
        ...

    async def instruct(self, user_id: UserId, text: str, now: int) -> None:
        """Replaces it."""
        ...

    async def sweep(self, now: int) -> None:
        """Does the same with agents whose owner the host application has deleted from its own table."""
        ...

    def ids(self) -> AsyncIterator[UserId]:
        """All known users."""
        ...
