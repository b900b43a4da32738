"""Where the tree of a conversation's messages is read, and its active path is moved."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from threadkeep.domain.conversation import Branch, Conversation
from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.message import Message

Siblings = Mapping[MessageId, Sequence[MessageId]]
"""For a message the ids of all that follow the same one, itself among them, oldest first."""


class BranchStore(Protocol):
    """The branches of conversations."""

    async def up_to(self, conversation_id: ConversationId, message_id: MessageId | None) -> Branch | None:
        """The branch that ends with a message, or before the first one; None without such a message."""
        ...

    async def through(self, conversation_id: ConversationId, message_id: MessageId) -> Branch | None:
        """The branch through a message that goes on along the newest message at each step."""
        ...

    async def follow(self, conversation: Conversation, branch: Branch) -> None:
        """Makes a branch the active path of a conversation, which was read before.

        StorageConflict when a turn has begun in it or its path has changed since.
        """
        ...

    async def siblings(self, conversation_id: ConversationId, messages: Iterable[Message]) -> Siblings:
        """The siblings of those messages that have any."""
        ...
