"""How much each user stores, from the counts in the database."""

from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.storage.database.connector import Database, Plan
from threadkeep.storage.documents.documents import document_totals
from threadkeep.storage.files.rows import FILE_BYTES
from threadkeep.storage.text_bytes import OF_CONVERSATION, text_bytes_of


class SqlStoredBytes:
    """The counts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, user_id: UserId) -> int:
        """The bytes of all rows, texts and files of a user, and of the documents of their agents."""
        return await self._database.read(lambda: _of_user(user_id))

    async def of_conversation(self, conversation_id: ConversationId) -> int:
        """The bytes of a conversation's rows and texts."""
        rows = await self._database.fetch(OF_CONVERSATION(conversation_id=conversation_id))
        return rows[0][0] if rows else 0


def _of_user(user_id: UserId) -> Plan[int]:
    texts = yield from text_bytes_of(user_id)
    ((files,),) = yield FILE_BYTES(user_id=user_id)
    _, documents = yield from document_totals(user_id)
    return texts + files + documents
