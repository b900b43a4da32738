"""The queues in the database, in which messages wait for the turn before them, in order.

A message enters the queue while a turn is active; the store refuses that turn's end until the turn has seen
the message. A message leaves the queue in the commit that begins its turn or adds it to the turn's log.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ContentId, ConversationId, IdempotencyKey, KeyId, MessageId, TurnId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import stop_using
from threadkeep.storage.queued_rows import QUEUED_COLUMNS, add_queued, to_queued
from threadkeep.storage.turn_log import append_query


@dataclass(frozen=True, slots=True)
class QueueState:
    """What the end of an active turn needs to know about the queue."""

    version: int
    first: QueuedMessage | None


TakeIn = Callable[[Sequence[QueuedMessage]], LogChunk]
"""The chunk of a turn's log for the messages that join it; pure."""


# A message with `taken_at` has left the queue; its row only keeps its idempotency key.
_WAITING = f"""SELECT {QUEUED_COLUMNS} FROM tk_queued
    WHERE conversation_id = :conversation_id AND taken_at IS NULL"""
# What was said to an answer follows it directly, even if the answer ended before it could take it in.
_NEXT_FIRST = "ORDER BY steers_turn_id IS NULL, position"
WAITING = Statement(f"{_WAITING} {_NEXT_FIRST}")
# Locks the turn's row: ending the turn waits, and then sees another version.
_NOTE_ADDED = Statement(
    """UPDATE tk_turns SET queue_version = queue_version + 1
    WHERE id = :turn_id AND status IN ('RUNNING', 'WAITING') RETURNING id"""
)
# No row comes back if the message has left the queue.
_EDIT = Statement(
    f"""UPDATE tk_queued SET content = :content, key_id = :key_id
    WHERE message_id = :message_id AND conversation_id = :conversation_id AND taken_at IS NULL
    RETURNING {QUEUED_COLUMNS}"""
)
# A turn that is about to send the message waits, and then finds it gone.
_LOCK = Statement(
    f"{_WAITING} AND message_id = :message_id",
    locks="FOR UPDATE",
)
# Also finds messages that have left the queue, for requests that are repeated.
_BY_KEY = Statement(
    f"""SELECT {QUEUED_COLUMNS}, request_hash FROM tk_queued
    WHERE conversation_id = :conversation_id AND idempotency_key = :key"""
)
# Only for the node that runs the turn; ending it is refused if the version has changed since.
_STATE = Statement(
    """SELECT conversation_id, queue_version FROM tk_turns
    WHERE id = :turn_id AND fence = :fence AND status = 'RUNNING'"""
)
# What begins as soon as the turn completes.
_FIRST = Statement(f"{_WAITING} {_NEXT_FIRST} LIMIT 1")
# The messages that a user sent for the running turn itself; locked until they are in its log.
_LOCK_STEERS = Statement(
    f"{_WAITING} AND steers_turn_id = :turn_id ORDER BY position",
    locks="FOR UPDATE",
)
# A message that leaves the queue without a turn of its own leaves its key behind: sending it again returns
# the same response, and nothing is sent twice. Its text is elsewhere, or unwanted.
_FORGET = Statement("DELETE FROM tk_queued WHERE message_id IN ({ids}) AND idempotency_key IS NULL")
_KEEP_KEYS = Statement(
    "UPDATE tk_queued SET taken_at = :now, content = '', files = '[]' WHERE message_id IN ({ids})"
)


class SqlQueue:
    """The queues of a database."""

    def __init__(self, database: Database, file_contents: FileContents) -> None:
        self._database = database
        self._file_contents = file_contents

    async def waiting(self, conversation_id: ConversationId) -> Sequence[QueuedMessage]:
        """The messages that wait in a conversation, next one first."""
        return [
            to_queued(row) for row in await self._database.fetch(WAITING(conversation_id=conversation_id))
        ]

    async def add(
        self, message: QueuedMessage, active_turn_id: TurnId, key: IdempotencyKey | None = None
    ) -> None:
        """Adds a message at the end, behind the turn that is active.

        StorageConflict if that turn has ended, or the key is already in the queue; RateLimited if it is full.
        """
        await self._database.write(lambda: _add(message, active_turn_id, key))

    async def edit(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        content: str,
        *,
        key_id: KeyId | None = None,
    ) -> QueuedMessage | None:
        """Edits a queued message; its turn counts for the key of who edited it.

        A turn that is about to send it has to read it again.
        """
        rows = await self._database.execute(
            _EDIT(conversation_id=conversation_id, message_id=message_id, content=content, key_id=key_id)
        )
        return to_queued(rows[0]) if rows else None

    async def remove(self, conversation_id: ConversationId, message_id: MessageId, now: int) -> bool:
        """Removes a queued message, but not its key; returns whether it did.

        A turn that is about to send it fails to.
        """
        removed, freed = await self._database.write(lambda: _remove(conversation_id, message_id, now))
        await self._file_contents.remove(freed)
        return removed

    async def find_by_key(
        self, conversation_id: ConversationId, key: str
    ) -> tuple[QueuedMessage, str] | None:
        """The message sent with an idempotency key, and the request's hash.

        One that joined a running turn or was removed is found without its text; one whose own turn has begun
        is found by that turn.
        """
        rows = await self._database.fetch(_BY_KEY(conversation_id=conversation_id, key=key))
        return (to_queued(rows[0][:-1]), rows[0][-1]) if rows else None

    async def state_for(self, turn_id: TurnId, fence: int) -> QueueState | None:
        """The queue behind a turn that runs under this fence; None if it no longer does."""
        return await self._database.read(lambda: _state_for(turn_id, fence))

    async def take_in(
        self, conversation_id: ConversationId, turn_id: TurnId, fence: int, now: int, to_chunk: TakeIn
    ) -> LogChunk | None:
        """Moves the messages that steer a turn from the queue to its log, all or nothing.

        None if there are none. StorageConflict if another node has taken over the turn.
        """
        return await self._database.write(lambda: _take_in(conversation_id, turn_id, fence, now, to_chunk))


def _add(message: QueuedMessage, active_turn_id: TurnId, key: IdempotencyKey | None) -> Plan[None]:
    if not (yield _NOTE_ADDED(turn_id=active_turn_id)):
        raise StorageConflict("The turn has already ended.")
    yield from add_queued(message, key)


def _state_for(turn_id: TurnId, fence: int) -> Plan[QueueState | None]:
    # Reads the version first: if the queue changes after that, the end is refused again.
    rows = yield _STATE(turn_id=turn_id, fence=fence)
    if not rows:
        return None
    conversation_id, version = rows[0]
    first = yield _FIRST(conversation_id=conversation_id)
    return QueueState(version, to_queued(first[0]) if first else None)


def _take_in(
    conversation_id: ConversationId, turn_id: TurnId, fence: int, now: int, to_chunk: TakeIn
) -> Plan[LogChunk | None]:
    rows = yield _LOCK_STEERS(conversation_id=conversation_id, turn_id=turn_id)
    if not rows:
        return None
    messages = [to_queued(row) for row in rows]
    chunk = to_chunk(messages)
    if not (yield append_query(chunk, fence)):
        raise StorageConflict("The turn has ended, or another node runs it.")
    yield from _leave([message.id for message in messages], now)
    return chunk


def _remove(
    conversation_id: ConversationId, message_id: MessageId, now: int
) -> Plan[tuple[bool, list[ContentId]]]:
    rows = yield _LOCK(conversation_id=conversation_id, message_id=message_id)
    if not rows:
        return False, []
    message = to_queued(rows[0])
    yield from _leave([message.id], now)
    return True, (yield from stop_using(conversation_id, message.files))


def _leave(message_ids: Sequence[MessageId], now: int) -> Plan[None]:
    """Takes messages out of the queue, except for their keys."""
    ids = to_json(message_ids)
    yield _FORGET(ids=ids)
    yield _KEEP_KEYS(ids=ids, now=now)
