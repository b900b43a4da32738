"""The ids that users' clients give to conversations and messages, in the database."""

from collections.abc import Mapping, Sequence

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, MessageId, UserId
from threadkeep.storage.conversations import ConversationRows, conversation_columns
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement

_FIND = Statement(
    f"""SELECT {conversation_columns("conversation")} FROM tk_outside_conversations AS outside
    JOIN tk_conversations AS conversation ON conversation.id = outside.conversation_id
    WHERE outside.user_id = :user_id AND outside.outside_id = :outside_id
        AND conversation.deleted_at IS NULL"""
)
# Two requests may bring the same new id at once: the second gets no row back and uses the first one's
# conversation. A deleted conversation gives its id up.
_BIND = Statement(
    """INSERT INTO tk_outside_conversations (user_id, outside_id, conversation_id)
    VALUES (:user_id, :outside_id, :conversation_id)
    ON CONFLICT (user_id, outside_id) DO UPDATE SET conversation_id = excluded.conversation_id
        WHERE EXISTS (SELECT 1 FROM tk_conversations AS holder
            WHERE holder.id = tk_outside_conversations.conversation_id AND holder.deleted_at IS NOT NULL)"""
)
# An edited message keeps its outside id: the newest version has it.
_BIND_MESSAGE = Statement(
    """INSERT INTO tk_outside_messages (conversation_id, outside_id, message_id)
    VALUES (:conversation_id, :outside_id, :message_id)
    ON CONFLICT (conversation_id, outside_id) DO UPDATE SET message_id = excluded.message_id"""
)
_FIND_MESSAGE = Statement(
    """SELECT message_id FROM tk_outside_messages
    WHERE conversation_id = :conversation_id AND outside_id = :outside_id"""
)
_OF_MESSAGES = Statement(
    """SELECT message_id, outside_id FROM tk_outside_messages
    WHERE conversation_id = :conversation_id AND message_id IN ({ids})"""
)
_FORGET_SAME = Statement(
    """DELETE FROM tk_outside_conversations WHERE user_id = :giver AND outside_id IN (
        SELECT outside_id FROM tk_outside_conversations WHERE user_id = :receiver)"""
)
_MOVE = Statement("UPDATE tk_outside_conversations SET user_id = :receiver WHERE user_id = :giver")


class SqlOutsideIds:
    """Ids from outside: each user has their own for conversations, each conversation its own for messages.

    The start of a turn stores its message's id (`BegunTurn.outside_id`), and a new conversation's.
    """

    def __init__(self, database: Database, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows

    async def conversation(self, user_id: UserId, outside_id: str) -> Conversation | None:
        """The user's conversation with this outside id, unless it is deleted."""
        rows = await self._database.fetch(_FIND(user_id=user_id, outside_id=outside_id))
        return self._rows.read(rows[0]) if rows else None

    async def bind(self, conversation: Conversation, outside_id: str) -> Conversation:
        """Gives a stored conversation a further outside id; returns the one that has the id by now."""
        try:
            await self._database.write(lambda: bind_conversation(conversation, outside_id))
        except StorageConflict:
            if (found := await self.conversation(conversation.user_id, outside_id)) is None:
                raise
            return found
        return conversation

    async def message(self, conversation_id: ConversationId, outside_id: str) -> MessageId | None:
        """The message with this outside id."""
        rows = await self._database.fetch(
            _FIND_MESSAGE(conversation_id=conversation_id, outside_id=outside_id)
        )
        return rows[0][0] if rows else None

    async def of_messages(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> Mapping[MessageId, str]:
        """The outside ids of those messages that have one."""
        rows = await self._database.fetch(
            _OF_MESSAGES(conversation_id=conversation_id, ids=to_json(message_ids))
        )
        return dict(rows)


def bind_conversation(conversation: Conversation, outside_id: str) -> Plan[None]:
    """Gives a conversation an outside id; StorageConflict if another one has it."""
    which = {"user_id": conversation.user_id, "outside_id": outside_id}
    if not (yield _BIND(**which, conversation_id=conversation.id)):
        raise StorageConflict("Another conversation has this id.")


def bind_message(conversation_id: ConversationId, outside_id: str, message_id: MessageId) -> Plan[None]:
    """Gives a message its outside id; a message that had it before loses it."""
    yield _BIND_MESSAGE(conversation_id=conversation_id, outside_id=outside_id, message_id=message_id)


def move_outside_ids(giver: UserId, receiver: UserId) -> Plan[None]:
    """Gives one user's ids to another; those that the receiver has too stay the receiver's."""
    yield _FORGET_SAME(giver=giver, receiver=receiver)
    yield _MOVE(giver=giver, receiver=receiver)
