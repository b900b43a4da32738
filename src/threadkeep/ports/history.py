"""Search of a user's own messages and titles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId, ConversationId, MessageId, UserId
from threadkeep.domain.message import MessageRole


@dataclass(frozen=True, slots=True)
class SaidHit:
    """A message that was found, or a conversation by its title (without a message).

    `snippet` is text as a reader sees it, not Markdown; `highlights` are the positions of the words in it:
    begin and end of each.
    """

    entry_id: int
    conversation_id: ConversationId
    agent_id: AgentId
    title: str | None
    message_id: MessageId | None
    seq: int | None
    role: MessageRole | None
    snippet: str
    highlights: Sequence[tuple[int, int]]
    created_at: int
    on_path: bool = True
    """Whether it is on the conversation's active path."""


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
