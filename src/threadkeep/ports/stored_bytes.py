"""How much each user stores: rows and texts, files, and documents."""

from typing import Protocol

from threadkeep.domain.ids import ConversationId, UserId


class StoredBytes(Protocol):
    """Counts that cost little to read, however much there is."""

    async def of_user(self, user_id: UserId) -> int:
        """The bytes of all rows, texts and files of a user, and of the documents of their agents."""
        ...

    async def of_conversation(self, conversation_id: ConversationId) -> int:
        """The bytes of a conversation's rows and texts; files count for their user."""
        ...
