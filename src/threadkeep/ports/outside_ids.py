"""Storage of the ids that users' clients give to conversations and messages."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, MessageId, UserId


class OutsideIds(Protocol):
    """Ids from outside: each user has their own for conversations, each conversation its own for messages.

    The start of a turn stores its message's id (`NewTurn.outside_id`), and that of a new conversation.
    """

    async def conversation(self, user_id: UserId, outside_id: str) -> Conversation | None:
        """The user's conversation with this outside id, unless it is deleted."""
        ...

    async def bind(self, conversation: Conversation, outside_id: str) -> Conversation:
        """Gives a stored conversation a further outside id; returns the one that has the id by now."""
        ...

    async def message(self, conversation_id: ConversationId, outside_id: str) -> MessageId | None:
        """The message with this outside id."""
        ...

    async def of_messages(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> Mapping[MessageId, str]:
        """The outside ids of those messages that have one."""
        ...
