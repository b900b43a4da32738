"""Storage of the tree of messages and of its active path."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from threadkeep.domain.conversation import Branch, Conversation
from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.message import Message, MessageStatus

Siblings = Mapping[MessageId, Sequence[MessageId]]
"""For each message, the ids of all messages with the same parent, including itself, oldest first."""


class OutlinedMessage(NamedTuple):
    """A message without its content."""

    id: MessageId
    seq: int
    status: MessageStatus


class BranchStore(Protocol):
    """The branches of conversations."""

    async def up_to(self, conversation_id: ConversationId, message_id: MessageId | None) -> Branch | None:
        """The branch that ends with a message, or before the first one; None if the message is not found."""
        ...

    async def through(self, conversation_id: ConversationId, message_id: MessageId) -> Branch | None:
        """The branch through a message that continues with the newest message at each step."""
        ...

    async def outline(
        self, conversation_id: ConversationId, *, after_seq: int, to_seq: int | None, limit: int
    ) -> Sequence[OutlinedMessage]:
        """Some messages in their order, after a number: of the active path up to a number, or of all."""
        ...

    async def newest_reply(self, conversation_id: ConversationId, question_id: MessageId) -> MessageId | None:
        """The newest reply to a message."""
        ...

    async def follow(self, conversation: Conversation, branch: Branch) -> None:
        """Makes a branch the active path of a conversation.

        StorageConflict if a turn has begun in it or its path has changed since it was read.
        """
        ...

    async def siblings(self, conversation_id: ConversationId, messages: Iterable[Message]) -> Siblings:
        """The siblings of those messages that have any."""
        ...
