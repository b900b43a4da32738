"""Rows of the queue, for the units of work that add and take messages."""

import msgspec

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, IdempotencyKey, MessageId
from threadkeep.domain.parts import FilePart
from threadkeep.domain.queued import QueuedMessage, check_room
from threadkeep.domain.turn import BegunWith
from threadkeep.storage.database.columns import to_json, to_json_or_null
from threadkeep.storage.database.connector import Plan, Row, Statement
from threadkeep.storage.file_rows import mark_sent

QUEUED_COLUMNS = """message_id, conversation_id, content, created_at, steers_turn_id, files, model, key_id,
    begun_with"""

HAS_QUEUE = """EXISTS (SELECT 1 FROM tk_queued AS queued
    WHERE queued.conversation_id = :conversation_id AND queued.taken_at IS NULL)"""

# The caller has locked the queue, so the checks still hold when the message is added, and the next position
# is free.
_COUNT = Statement(
    """SELECT COUNT(*) FROM tk_queued WHERE conversation_id = :conversation_id AND taken_at IS NULL"""
)
_FIND_KEY = Statement(
    """SELECT message_id FROM tk_queued WHERE conversation_id = :conversation_id AND idempotency_key = :key"""
)
_ADD = Statement(
    """INSERT INTO tk_queued (message_id, conversation_id, position, content, files, steers_turn_id, model,
        idempotency_key, request_hash, created_at, key_id, begun_with)
    VALUES (:message_id, :conversation_id,
        (SELECT COALESCE(MAX(position), 0) + 1 FROM tk_queued WHERE conversation_id = :conversation_id),
        :content, :files, :steers_turn_id, :model, :key, :request_hash, :now, :key_id, :begun_with)"""
)
# The sender has read it before: it is sent as read, or not at all.
_TAKE = Statement(
    """DELETE FROM tk_queued WHERE message_id = :message_id AND content = :content AND taken_at IS NULL
    RETURNING idempotency_key, request_hash"""
)

_files = msgspec.json.Decoder(tuple[FilePart, ...])
_begun_with = msgspec.json.Decoder(BegunWith)


def add_queued(message: QueuedMessage, key: IdempotencyKey | None) -> Plan[None]:
    """Adds a message at the end of the queue; the caller has locked the conversation's queue."""
    where = {"conversation_id": message.conversation_id}
    if key is not None and (yield _FIND_KEY(**where, key=key.name)):
        raise StorageConflict("The message is already in the queue.")
    ((waiting,),) = yield _COUNT(**where)
    check_room(waiting)
    yield _ADD(
        **where,
        message_id=message.id,
        content=message.content,
        files=to_json(message.files) if message.files else None,
        steers_turn_id=message.steers_turn_id,
        model=message.model,
        key=key.name if key else None,
        request_hash=key.request_hash if key else None,
        now=message.created_at,
        key_id=message.key_id,
        begun_with=to_json_or_null(message.begun_with),
    )
    yield from mark_sent(message.conversation_id, message.files)


def take_queued(message: QueuedMessage) -> Plan[IdempotencyKey | None]:
    """Takes a message out of the queue because its turn begins; returns its idempotency key."""
    rows = yield _TAKE(message_id=message.id, content=message.content)
    if not rows:
        raise StorageConflict("The queued message was changed or removed.")
    name, request_hash = rows[0]
    return IdempotencyKey(name, request_hash) if name is not None else None


def to_queued(row: Row) -> QueuedMessage:
    """A row of `tk_queued`, with QUEUED_COLUMNS."""
    message_id, conversation_id, content, created_at, steers_turn_id, files, model, key_id, begun_with = row
    return QueuedMessage(
        id=MessageId(message_id),
        conversation_id=ConversationId(conversation_id),
        content=content,
        created_at=created_at,
        steers_turn_id=steers_turn_id,
        files=decode_files(files),
        model=model,
        key_id=key_id,
        begun_with=decode_begun_with(begun_with),
    )


def decode_files(files: str | None) -> tuple[FilePart, ...]:
    """The files of a waiting message."""
    return _files.decode(files) if files else ()


def decode_begun_with(begun_with: str | None) -> BegunWith | None:
    """What the request brought with it."""
    return _begun_with.decode(begun_with) if begun_with else None
