"""Compactions in the database. A conversation's `archived_to_seq` says which one is in force.

A compaction belongs to its last message: it is in force only while that one is on the active path.
"""

from collections.abc import Sequence

from threadkeep.domain.compaction import Compaction, CompactionProgress
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import CompactionId, ConversationId
from threadkeep.storage.database.connector import LAST_SEQ, Database, Plan, Statement
from threadkeep.storage.path_moves import on_path
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length, count

_COLUMNS = """id, conversation_id, from_seq, to_seq, summary, archived_count, tokens_before, tokens_after,
    created_at"""

# Imports and forks add only this: their conversation already has its `archived_to_seq`.
ADD = Statement(
    f"""INSERT INTO tk_compactions ({_COLUMNS})
    VALUES (:id, :conversation_id, :from_seq, :to_seq, :summary, :archived_count, :tokens_before,
        :tokens_after, :created_at)"""
)
# Locks the conversation: its messages do not change after this.
_HOLD = Statement(
    "SELECT 1 FROM tk_conversations WHERE id = :conversation_id",
    locks="FOR UPDATE",
)
# The replies so far had other context windows than the next one will. The last message, not `last_seq`: that
# already counts the messages of a turn whose beginning moves the path.
_RESET_WINDOW = """window_reset_seq = COALESCE((
        SELECT MAX(seq) FROM tk_messages WHERE conversation_id = :conversation_id), 0)"""
# A compare-and-set: never overwrites another compaction or undo.
_ARCHIVE = Statement(
    f"""UPDATE tk_conversations SET archived_to_seq = :to_seq, {_RESET_WINDOW}
    WHERE id = :conversation_id AND archived_to_seq = :expected AND deleted_at IS NULL
        AND EXISTS (SELECT 1 FROM tk_messages
            WHERE conversation_id = :conversation_id AND seq = :to_seq AND {on_path()})
    RETURNING id"""
)
# Only the compaction in force can be undone. RENEW_ARCHIVED then finds the one before it.
_BRING_BACK = Statement(
    """UPDATE tk_conversations SET archived_to_seq = 0
    WHERE id = :conversation_id AND archived_to_seq = :to_seq AND deleted_at IS NULL RETURNING id"""
)
# After a change of the path or an undo: the newest compaction whose last message is on the path.
RENEW_ARCHIVED = Statement(
    f"""UPDATE tk_conversations SET {_RESET_WINDOW}, archived_to_seq = COALESCE((
        SELECT MAX(compaction.to_seq) FROM tk_compactions AS compaction
        JOIN tk_messages AS last ON last.conversation_id = compaction.conversation_id
            AND last.seq = compaction.to_seq AND {on_path("last")}
        WHERE compaction.conversation_id = :conversation_id), 0)
    WHERE id = :conversation_id"""
)
_REMOVE = Statement("DELETE FROM tk_compactions WHERE id = :id")
_GET = Statement(
    f"SELECT {_COLUMNS} FROM tk_compactions WHERE id = :id AND conversation_id = :conversation_id"
)
# The compaction in force, whose summary the model reads.
CURRENT = Statement(
    f"""SELECT {_COLUMNS} FROM tk_compactions WHERE conversation_id = :conversation_id
        AND to_seq = (SELECT archived_to_seq FROM tk_conversations WHERE id = :conversation_id)"""
)
PAGE = Statement(
    f"""SELECT {_COLUMNS} FROM tk_compactions
    WHERE conversation_id = :conversation_id AND to_seq < :before ORDER BY to_seq DESC
    LIMIT :limit OFFSET :offset"""
)
_PROGRESS_COLUMNS = "conversation_id, from_seq, text_count, texts_sha256, summary, failures, not_before"
_PROGRESS = Statement(
    f"SELECT {_PROGRESS_COLUMNS} FROM tk_compaction_progress WHERE conversation_id = :conversation_id"
)
# Nothing for a conversation that was purged meanwhile.
_KEEP_PROGRESS = Statement(
    f"""INSERT INTO tk_compaction_progress ({_PROGRESS_COLUMNS})
    SELECT id, CAST(:from_seq AS bigint), CAST(:text_count AS bigint), CAST(:texts_sha256 AS text),
        CAST(:summary AS text), CAST(:failures AS bigint), CAST(:not_before AS bigint)
    FROM tk_conversations WHERE id = :conversation_id
    ON CONFLICT (conversation_id) DO UPDATE SET from_seq = excluded.from_seq,
        text_count = excluded.text_count, texts_sha256 = excluded.texts_sha256, summary = excluded.summary,
        failures = excluded.failures, not_before = excluded.not_before"""
)
_END_PROGRESS = Statement("DELETE FROM tk_compaction_progress WHERE conversation_id = :conversation_id")


class SqlCompactions:
    """Summaries, and the messages they replace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, compaction: Compaction) -> None:
        """Stores a compaction and archives its messages; StorageConflict if others were archived since."""
        await self._database.write(lambda: _add(compaction))

    async def current(self, conversation_id: ConversationId) -> Compaction | None:
        """The compaction whose summary replaces all archived messages; None if nothing is archived."""
        rows = await self._database.fetch(CURRENT(conversation_id=conversation_id))
        return Compaction(*rows[0]) if rows else None

    async def get(self, conversation_id: ConversationId, compaction_id: CompactionId) -> Compaction | None:
        """One compaction of a conversation."""
        rows = await self._database.fetch(_GET(id=compaction_id, conversation_id=conversation_id))
        return Compaction(*rows[0]) if rows else None

    async def page(
        self, conversation_id: ConversationId, *, before: int | None, offset: int, limit: int
    ) -> Sequence[Compaction]:
        """The compactions of a conversation, newest first; those that end before a message's number."""
        rows = await self._database.fetch(
            PAGE(
                conversation_id=conversation_id,
                before=LAST_SEQ if before is None else before,
                offset=offset,
                limit=limit,
            )
        )
        return [Compaction(*row) for row in rows]

    async def progress(self, conversation_id: ConversationId) -> CompactionProgress | None:
        """How far the next compaction has come; the compaction itself ends that."""
        rows = await self._database.fetch(_PROGRESS(conversation_id=conversation_id))
        return CompactionProgress(*rows[0]) if rows else None

    async def keep_progress(self, progress: CompactionProgress) -> None:
        """Replaces it, as long as there is the conversation."""
        values = {name: getattr(progress, name) for name in CompactionProgress.__slots__}
        await self._database.execute(_KEEP_PROGRESS(**values))

    async def undo(self, compaction: Compaction) -> bool:
        """Returns the messages of the latest compaction to the context; False if it isn't the latest."""
        return await self._database.write(lambda: _undo(compaction))


def compaction_bytes(compaction: Compaction) -> int:
    """What a compaction takes in the database."""
    return ROW_BYTES + byte_length(compaction.summary)


def _add(compaction: Compaction) -> Plan[None]:
    yield _HOLD(conversation_id=compaction.conversation_id)
    if not (
        yield _ARCHIVE(
            conversation_id=compaction.conversation_id,
            expected=compaction.from_seq - 1,
            to_seq=compaction.to_seq,
        )
    ):
        raise StorageConflict("The conversation was compacted, or its path has changed, since it was read.")
    yield ADD(**{name: getattr(compaction, name) for name in Compaction.__slots__})
    yield count(compaction.conversation_id, compaction_bytes(compaction))
    yield _END_PROGRESS(conversation_id=compaction.conversation_id)


def _undo(compaction: Compaction) -> Plan[bool]:
    is_newest = yield _BRING_BACK(conversation_id=compaction.conversation_id, to_seq=compaction.to_seq)
    if is_newest:
        yield _REMOVE(id=compaction.id)
        yield count(compaction.conversation_id, -compaction_bytes(compaction))
        yield RENEW_ARCHIVED(conversation_id=compaction.conversation_id)
    return bool(is_newest)
