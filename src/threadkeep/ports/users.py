"""Where the users are kept of whom we know."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId, ConversationId, PayloadId, UserId


@dataclass(frozen=True, slots=True)
class Purged:
    """What went with a user, and may have files that go too."""

    agent_ids: Sequence[AgentId]
    conversation_ids: Sequence[ConversationId]
    file_ids: Sequence[PayloadId] = ()


class UserStore(Protocol):
    """The users we know of."""

    async def delete(self, user_id: UserId, now: int) -> Purged | None:
        """Removes a user and all that is theirs; None where nobody was known.

        Their agents that others talk to are emptied and hidden.
        """
        ...

    async def meet(self, user_id: UserId, now: int) -> None:
        """Makes a user known; Forbidden where the host application has no such user."""
        ...

    async def sweep(self, now: int) -> None:
        """Does the same with agents whose owner the host application has deleted from its own table."""
        ...

    def ids(self) -> AsyncIterator[UserId]:
        """Everyone whom we know of."""
        ...
