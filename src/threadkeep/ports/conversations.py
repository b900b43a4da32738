"""Storage of conversations, without their messages."""

from collections.abc import Callable, Sequence
from typing import Protocol

from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.ids import AgentId, ConversationId, IdempotencyKey, UserId


class ConversationStore(Protocol):
    """Conversations without their messages."""

    async def add(self, conversation: Conversation) -> None:
        """Stores a new conversation."""
        ...

    async def add_once(self, conversation: Conversation, key: IdempotencyKey) -> None:
        """Stores a new conversation with its request's key; StorageConflict if its user has used the key."""
        ...

    async def find_by_key(self, user_id: UserId, key: str) -> tuple[Conversation, str] | None:
        """The conversation, deleted or not, that a user created with a key, and the request's hash."""
        ...

    async def get_or_add_main(self, fresh: Conversation) -> tuple[Conversation, bool]:
        """The user's main conversation with the agent, and whether `fresh` just became it."""
        ...

    async def get_main(self, user_id: UserId, agent_id: AgentId) -> Conversation | None:
        """The user's main conversation with the agent, if there is one."""
        ...

    async def get(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """One of the user's conversations that is not deleted."""
        ...

    async def by_session(self, session_id: str) -> Conversation | None:
        """The conversation of a session id, any user's, unless it is deleted."""
        ...

    async def page(
        self,
        user_id: UserId,
        which: ConversationFilter,
        *,
        after: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[Conversation]:
        """The user's conversations by `(updated_at, id)`, newest first, after a position.

        Deleted ones only if the filter includes them; they are ordered by `(deleted_at, id)`.
        """
        ...

    async def begun_with(
        self, user_id: UserId, question: str, since: int, *, but_by: str, limit: int
    ) -> Sequence[Conversation]:
        """The user's conversations that consist of this question and a reply, changed since a time, newest
        first; not those that a client knows by an outside id, except by this one.
        """
        ...

    async def update(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        change: Callable[[Conversation], Conversation],
    ) -> Conversation | None:
        """Changes title, status, pin, metadata or session exclusively; the change must be pure."""
        ...

    async def change_agent(self, conversation: Conversation, agent_id: AgentId) -> bool:
        """Gives a conversation another agent, and returns whether it did: not to the main one, not after a
        turn, and not if it has changed since it was read.
        """
        ...

    async def delete(self, user_id: UserId, conversation_id: ConversationId, now: int) -> bool:
        """Deletes a conversation with everything that belongs to it, restorably."""
        ...

    async def restore(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """Restores a deleted conversation; as a regular one if a new main conversation exists."""
        ...

    async def purge(
        self, user_id: UserId, conversation_id: ConversationId, *, only_deleted: bool = False
    ) -> bool:
        """Purges a conversation, deleted before or not, or only a deleted one; returns whether it did.

        It is gone for everyone at once. Its rows go in pieces; `purge_left` finishes what a crash interrupts.
        """
        ...

    async def purge_deleted_before(self, time: int) -> Sequence[ConversationId]:
        """Purges some of the conversations deleted before a time; returns which, none once all are gone."""
        ...

    async def purge_left(self) -> Sequence[ConversationId]:
        """Purges some of the conversations that a crash has left, half written or half purged; returns which,
        none once all are gone.
        """
        ...

    async def let_all_go(self) -> None:
        """Gives up all conversations that are being written; for a process that is known to be alone."""
        ...
