"""Search of a user's own messages and titles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.message import SaidHit


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which messages and titles to search; None is any."""

    agents: frozenset[AgentId] | None = None
    """Those in conversations with one of these."""
    since: int | None = None
    until: int | None = None
    """Those created before this time."""


EVERYTHING = SearchFilter()


class HistoryIndex(Protocol):
    """The index of all messages and titles; it follows the store and is not part of an append."""

    async def behind(self, *, after: str | None, limit: int) -> Sequence[ConversationId]:
        """Conversations with finished messages that aren't indexed yet, by id."""
        ...

    async def follow(self, conversation_id: ConversationId, *, limit: int) -> bool:
        """Indexes some more of a conversation; returns whether there may be more to do."""
        ...

    async def search(
        self,
        user_id: UserId,
        query: str,
        *,
        before: int | None,
        limit: int,
        which: SearchFilter = EVERYTHING,
    ) -> Sequence[SaidHit]:
        """Matches with all words of the query, newest first, in conversations that aren't deleted. The last
        word finds all that it begins.
        """
        ...
