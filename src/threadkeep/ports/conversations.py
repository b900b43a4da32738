"""Where conversations are kept, apart from their messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import Conversation, ListedStatus
from threadkeep.domain.ids import AgentId, ConversationId, UserId


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """Which of a user's conversations are meant."""

    agent_id: AgentId | None = None
    status: ListedStatus | None = None
    pinned: bool | None = None


class ConversationStore(Protocol):
    """Conversations without their messages."""

    async def add(self, conversation: Conversation) -> None:
        """Keeps a new conversation."""
        ...

    async def get_or_add_main(self, fresh: Conversation) -> tuple[Conversation, bool]:
        """The main conversation of the user with the agent, and whether `fresh` became it just now."""
        ...

    async def get_main(self, user_id: UserId, agent_id: AgentId) -> Conversation | None:
        """The main conversation of the user with the agent, if there is one."""
        ...

    async def get(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """One of the user's conversations that is not deleted."""
        ...

    async def by_session(self, session_id: str) -> Conversation | None:
        """The conversation that a session id opens, whosever it is, unless it is deleted."""
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

        Deleted ones only where the filter names them; they come by `(deleted_at, id)`.
        """
        ...

    async def update(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        change: Callable[[Conversation], Conversation],
    ) -> Conversation | None:
        """Changes title, status, pin, metadata or session while nobody else does; the change must be pure."""
        ...

    async def delete(self, user_id: UserId, conversation_id: ConversationId, now: int) -> bool:
        """Hides a conversation and all that hangs on it."""
        ...

    async def restore(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """Brings a deleted one back; as a further one where a new main one has been made since."""
        ...

    async def purge(self, user_id: UserId, conversation_id: ConversationId) -> bool:
        """Removes every row of a conversation, deleted before or not."""
        ...

    async def purge_deleted_before(self, time: int) -> Sequence[ConversationId]:
        """Removes every row of the conversations that were deleted before a time; tells which."""
        ...
