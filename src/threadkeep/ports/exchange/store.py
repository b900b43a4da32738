"""Storage of whole conversations: for exports, imports, forks, and moves from one user to another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.domain.ids import ConversationId, ImportId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.payload import Payload
from threadkeep.ports.exchange.records import KeptMemory, KeptTurn, WholeConversation

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


class ExchangeStore(Protocol):
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

    async def add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None = None,
        *,
        within: ImportId | None = None,
    ) -> AddedConversation:
        """Stores a whole conversation, all or nothing.

        `content` is called for each payload, in a thread, again on a retry. Before that, `check_bytes` is
        called with the size of the conversation's texts and values, and of all files and documents that the
        user would then have. StorageConflict if one of its ids is taken, or if the run `within` which it is
        imported has ended.
        """
        ...

    async def add_fork(self, whole: WholeConversation, source_id: ConversationId) -> None:
        """Stores a copy of part of another conversation, all or nothing; its turns don't count as usage."""
        ...

    async def reassign(self, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
        """Moves everything from one user to another, all or nothing; UserNotFound if there is nothing.

        TurnInProgress while a turn of the giver runs, unless we are known to be `alone` on this database.
        """
        ...
