"""Storage of whole conversations: for exports, imports, forks, and moves from one user to another."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.ids import ConversationId, ImportId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.memory import KeptMemory
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn

Owned = Literal["user", "agent", "conversation", "memory", "document", "message"]
CheckBytes = Callable[[int], None]
"""Raises LimitNotAllowed if a user may not have that many bytes."""


@dataclass(frozen=True, slots=True)
class AddedConversation:
    """What became of a conversation that was to be stored."""

    is_main: bool
    """Not if the user already has a main one with this agent."""
    text_bytes: int
    """The size of its texts and values, without files."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved to another user.

    `former_mains` are conversations that are no longer main ones, because the user already has a main one
    with the same agent. `unsearchable` are those that must be indexed again.
    """

    conversations: int
    agents: int
    briefings: int
    memories: int
    former_mains: Sequence[ConversationId] = ()
    unsearchable: Sequence[ConversationId] = ()


class WritingStopped(Exception):
    """Somebody has stopped the import of a conversation; nothing of it stays."""


class ForkWriter(Protocol):
    """Writes a copy of a conversation page by page."""

    async def add(self, part: WholeConversation) -> None:
        """Adds messages, and the turns, payloads and compactions that come with them."""
        ...


class WholeConversationStore(Protocol):
    """Operations that only exports, imports and moves need."""

    async def owner_of(self, kind: Owned, id_: str) -> str | None:
        """The owner of an item, deleted or not: a user, or a document's agent. None if it doesn't exist."""
        ...

    async def turns(
        self, conversation_id: ConversationId, *, after: TurnId | None, limit: int
    ) -> Sequence[KeptTurn]:
        """The turns of a conversation by id."""
        ...

    async def payloads(
        self, conversation_id: ConversationId, *, after: PayloadId | None, limit: int
    ) -> Sequence[Payload]:
        """The metadata of a conversation's values and files, by id."""
        ...

    async def memories(self, user_id: UserId, *, after: MemoryId | None, limit: int) -> Sequence[KeptMemory]:
        """An agent's memories of a user, by id."""
        ...

    async def text_bytes(self, user_id: UserId) -> int:
        """The size of all texts and values in the user's conversations, without files."""
        ...

    async def turns_by_id(
        self, conversation_id: ConversationId, ids: Collection[TurnId]
    ) -> Sequence[KeptTurn]:
        """Some turns of a conversation."""
        ...

    async def payloads_by_id(
        self, conversation_id: ConversationId, ids: Collection[PayloadId]
    ) -> Sequence[Payload]:
        """The metadata of some of a conversation's values and files."""
        ...

    async def clear(self, user_id: UserId, ids: Collection[ConversationId]) -> None:
        """Removes what is left of the user's conversations with these ids that were never finished."""
        ...

    async def add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None = None,
        *,
        within: ImportId | None = None,
        goes_on: Callable[[], bool] | None = None,
    ) -> AddedConversation:
        """Stores a whole conversation, in pieces; nobody sees it before the last one.

        `content` is called for each payload, in a thread. Before that, `check_bytes` is called with the size
        of the conversation's texts and values, and of all files and documents that the user would then have.
        StorageConflict if one of its ids is taken, or if the run `within` which it is imported has ended;
        WritingStopped if it no longer `goes_on`. Then nothing of it stays.
        """
        ...

    def forking(
        self, copy: Conversation, source_id: ConversationId
    ) -> AbstractAsyncContextManager[ForkWriter]:
        """Stores a copy of part of another conversation, which appears when the block ends without an error.

        Its turns don't count as usage.
        """
        ...

    async def reassign(self, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
        """Moves everything from one user to another, all or nothing; UserNotFound if there is nothing.

        TurnInProgress while a turn of the giver runs, unless we are known to be `alone` on this database.
        """
        ...
