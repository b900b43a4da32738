"""Rows of the queue, for the units of work in which messages come into it and leave it."""

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.queued import QueuedMessage, check_room
from threadkeep.ports.turns import IdempotencyKey
from threadkeep.storage.database import Plan, Row, Statement

QUEUED_COLUMNS = "message_id, conversation_id, content, created_at, steers_turn_id"

HAS_QUEUE = """EXISTS (SELECT 1 FROM tk_queued AS queued
    WHERE queued.conversation_id = :conversation_id AND queued.taken_at IS NULL)"""

_COUNT = Statement(
    """SELECT COUNT(*) FROM tk_queued WHERE conversation_id = :conversation_id AND taken_at IS NULL"""
)
_FIND_KEY = Statement(
    """SELECT message_id FROM tk_queued WHERE conversation_id = :conversation_id AND idempotency_key = :key"""
)
_FORGET_OLD_KEYS = Statement(
    "DELETE FROM tk_queued WHERE conversation_id = :conversation_id AND taken_at < :expired"
)
_ADD = Statement(
    """INSERT INTO tk_queued (message_id, conversation_id, position, content, steers_turn_id,
        idempotency_key, request_hash, created_at)
    VALUES (:message_id, :conversation_id,
        (SELECT COALESCE(MAX(position), 0) + 1 FROM tk_queued WHERE conversation_id = :conversation_id),
        :content, :steers_turn_id, :key, :request_hash, :now)"""
)
# Whoever was about to send it has read it before: it goes as it was read, or not at all.
_TAKE = Statement(
    """DELETE FROM tk_queued WHERE message_id = :message_id AND content = :content AND taken_at IS NULL
    RETURNING idempotency_key, request_hash"""
)

KEYS_LIVE_MS = 24 * 60 * 60 * 1000


def add_queued(message: QueuedMessage, key: IdempotencyKey | None) -> Plan[None]:
    """Adds a message at the end of the queue; whoever runs this is alone with the conversation's queue."""
    where = {"conversation_id": message.conversation_id}
    yield _FORGET_OLD_KEYS(**where, expired=message.created_at - KEYS_LIVE_MS)
    if key is not None and (yield _FIND_KEY(**where, key=key.name)):
        raise StorageConflict("The message is in the queue already.")
    ((waiting,),) = yield _COUNT(**where)
    check_room(waiting)
    yield _ADD(
        **where,
        message_id=message.id,
        content=message.content,
        steers_turn_id=message.steers_turn_id,
        key=key.name if key else None,
        request_hash=key.request_hash if key else None,
        now=message.created_at,
    )


def take_queued(message: QueuedMessage) -> Plan[IdempotencyKey | None]:
    """Takes a message out of the queue, for its turn begins; gives the key with which it was sent."""
    rows = yield _TAKE(message_id=message.id, content=message.content)
    if not rows:
        raise StorageConflict("The queued message was changed or removed.")
    name, request_hash = rows[0]
    return IdempotencyKey(name, request_hash) if name is not None else None


def to_queued(row: Row) -> QueuedMessage:
    """A row of `tk_queued`, by QUEUED_COLUMNS."""
    message_id, conversation_id, content, created_at, steers_turn_id = row
    return QueuedMessage(
        MessageId(message_id), ConversationId(conversation_id), content, created_at, steers_turn_id
    )
