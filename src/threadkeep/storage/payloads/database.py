"""Payloads in the database; their contents in a folder or in a table.

A content is written before its row, and the row before whatever refers to it; they are removed in the
opposite order. So a crash can leave contents that nothing names, but never a name without content.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import FIRST_UUID, ContentId, ConversationId, PayloadId, UserId, is_uuid
from threadkeep.domain.payload import Lost, Payload, PayloadKind, content_hash
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.file_contents import FileContents, StoredBytes, ends_early
from threadkeep.storage.text_bytes import ROW_BYTES, count

log = logging.getLogger("threadkeep.storage")

HOUR_MS = 60 * 60 * 1000
MISSING = Lost("The content is missing.")
DAMAGED = Lost("The content is damaged.")
LEFT_OUT = Lost(
    "The values of this message are too large to be read at once. GET /api/tool-results returns each call."
)

_COLUMNS = "id, conversation_id, kind, media_type, file_name, size, sha256, created_at"
_INSERT = f"""INSERT INTO tk_payloads ({_COLUMNS})
    VALUES (:id, :conversation_id, :kind, :media_type, :file_name, :size, :sha256, :created_at)"""
# For imports and forks: their transaction adds the conversation, too.
ADD = Statement(_INSERT)
# A retry, after the reply to the first try was lost, finds the row.
_KEEP = Statement(f"{_INSERT} ON CONFLICT (id) DO NOTHING")

# A conversation's payloads are its own, and the forms of the files that it uses, whose bytes are the user's.
_OWN = f"SELECT {_COLUMNS}, CAST(NULL AS uuid) AS content_id FROM tk_payloads AS payload"
_FORMS = """SELECT form.id, used.conversation_id, form.kind, form.media_type,
        CASE WHEN form.id = file.id THEN file.file_name END AS file_name, content.size, content.sha256,
        file.created_at, content.id AS content_id
    FROM tk_file_uses AS used
    JOIN tk_files AS file ON file.id = used.file_id
    JOIN tk_file_forms AS form ON form.file_id = file.id
    JOIN tk_contents AS content ON content.id = form.content_id"""
# Some payloads of a conversation.
BY_ID = Statement(
    f"""{_OWN} WHERE id IN ({{ids}}) AND conversation_id = :conversation_id
    UNION ALL {_FORMS} WHERE form.id IN ({{ids}}) AND used.conversation_id = :conversation_id"""
)
# Likewise, only files that people can download.
_FILES = Statement(
    f"""{_OWN} WHERE id IN ({{ids}}) AND conversation_id = :conversation_id AND kind = 'artifact'
    UNION ALL {_FORMS}
    WHERE form.id IN ({{ids}}) AND used.conversation_id = :conversation_id AND form.kind = 'artifact'"""
)
# Which files in the folders of some conversations are still needed.
NAMED = Statement("SELECT conversation_id, sha256 FROM tk_payloads WHERE conversation_id IN ({ids})")
# All payloads of a conversation, a page at a time.
OF_CONVERSATION = Statement(
    f"""{_OWN} WHERE conversation_id = :conversation_id AND id > :after
    UNION ALL {_FORMS} WHERE used.conversation_id = :conversation_id AND form.id > :after
    ORDER BY id LIMIT :limit"""
)
# A file that a user can download: it is in one of the user's conversations.
FILE = Statement(
    f"""{_OWN} WHERE id = :id AND kind = 'artifact' AND EXISTS (SELECT 1 FROM tk_conversations AS conversation
        WHERE conversation.id = payload.conversation_id AND conversation.user_id = :user_id
            AND conversation.deleted_at IS NULL)
    UNION ALL {_FORMS}
    WHERE form.id = :id AND form.kind = 'artifact' AND EXISTS (SELECT 1 FROM tk_conversations AS conversation
        WHERE conversation.id = used.conversation_id AND conversation.user_id = :user_id
            AND conversation.deleted_at IS NULL)
    LIMIT 1"""
)


class Contents(Protocol):
    """Where the bytes are, by conversation and hash."""

    async def write(self, conversation_id: ConversationId, sha256: str, content: bytes) -> None:
        """Stores a content; it is durable when this returns."""
        ...

    def write_within(self, conversation_id: ConversationId, sha256: str, content: bytes) -> Plan[None]:
        """The same in a unit of work that creates the conversation; if that fails, a file remains."""
        ...

    async def copy(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> None:
        """Copies contents to a conversation that is about to be created, if they are outside the database."""
        ...

    def copy_within(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> Plan[None]:
        """The same in the unit of work that creates the conversation, if they are in the database."""
        ...

    async def read(self, payload: Payload) -> bytes | None:
        """A content as found; None if there is none."""
        ...

    async def size(self, payload: Payload) -> int | None:
        """How many bytes a content has as found; None if there is none."""
        ...

    def read_part(self, payload: Payload, start: int, stop: int) -> AsyncGenerator[bytes]:
        """Some of its bytes, in pieces; StorageError if they end early."""
        ...

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations."""
        ...

    async def collect(self, database: Database) -> int:
        """Removes contents older than an hour that no payload names."""
        ...


class SqlPayloads:
    """Payloads and their contents, by conversation: deleting the conversation deletes them."""

    def __init__(self, database: Database, contents: Contents, file_contents: FileContents) -> None:
        self._database = database
        self._contents = contents
        self._file_contents = file_contents

    async def add(self, payload: Payload, content: bytes) -> None:
        """Stores a payload; then a row may refer to it. StorageError if that fails."""
        await self._contents.write(payload.conversation_id, payload.sha256, content)
        await self._database.write(lambda: _add(payload))

    async def load(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId], *, most_bytes: int | None = None
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The contents of a conversation's payloads, each checked against its hash; one entry for each id.

        Another conversation's payloads count as missing. What would exceed `most_bytes` is left out.
        """
        found: dict[PayloadId, bytes | Lost] = dict.fromkeys(ids, MISSING)
        left = most_bytes
        for payload, content_id in await self._fetch(BY_ID, conversation_id, found):
            if left is not None and payload.size > left:
                found[payload.id] = LEFT_OUT
                continue
            left = None if left is None else left - payload.size
            content = await self._read(payload, content_id)
            if content is not None:
                intact = await asyncio.to_thread(content_hash, content) == payload.sha256
                found[payload.id] = content if intact else DAMAGED
        for payload_id, content in found.items():
            if isinstance(content, Lost) and content is not LEFT_OUT:
                log.error("couldn't load payload %s: %s", payload_id, content.reason)
        return found

    async def open(self, conversation_id: ConversationId, payload_id: PayloadId) -> StoredBytes | Lost:
        """The content of a conversation's payload, to be read piece by piece; checked as for `load`."""
        found: StoredBytes | Lost = MISSING
        for payload, content_id in await self._fetch(BY_ID, conversation_id, [payload_id]):
            found = await self._open(payload, content_id)
        if isinstance(found, Lost):
            log.error("couldn't open payload %s: %s", payload_id, found.reason)
        return found

    async def _open(self, payload: Payload, content_id: ContentId | None) -> StoredBytes | Lost:
        def read(start: int, stop: int) -> AsyncGenerator[bytes]:
            if content_id is None:
                return self._contents.read_part(payload, start, stop)
            return self._file_contents.read(content_id, start, stop)

        stored = StoredBytes(payload.size, payload.sha256, read)
        if content_id is None:
            size = await self._contents.size(payload)
        else:
            size = await self._file_contents.size(content_id)
        if size is None:
            return MISSING
        return stored if size == payload.size and await _is_intact(stored) else DAMAGED

    async def sizes(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, int]:
        """How many bytes a conversation's payloads have; nothing about those that are missing."""
        return {payload.id: payload.size for payload, _ in await self._fetch(BY_ID, conversation_id, ids)}

    async def file(self, user_id: UserId, payload_id: PayloadId) -> Payload | None:
        """A file in one of the user's conversations that is not deleted."""
        rows = await self._database.fetch(FILE(id=payload_id, user_id=user_id))
        return to_payload(rows[0])[0] if rows else None

    async def files(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, Payload]:
        """Details of a conversation's files; nothing about other conversations' files."""
        return {payload.id: payload for payload, _ in await self._fetch(_FILES, conversation_id, ids)}

    async def _fetch(
        self, statement: Statement, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> list[tuple[Payload, ContentId | None]]:
        asked = [it for it in ids if is_uuid(it)]  # the id of a file can be another engine's
        if not asked:
            return []
        query = statement(conversation_id=conversation_id, ids=to_json(asked))
        return [to_payload(row) for row in await self._database.fetch(query)]

    async def _read(self, payload: Payload, content_id: ContentId | None) -> bytes | None:
        if content_id is None:
            return await self._contents.read(payload)
        try:
            async with aclosing(self._file_contents.read(content_id, 0, payload.size)) as pieces:
                return b"".join([piece async for piece in pieces])
        except StorageRefused:
            return None

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations that have been purged."""
        await self._contents.forget(conversation_ids)

    async def collect(self) -> int:
        """Deletes contents that no payload refers to, as a crash may leave them; returns how many."""
        return await self._contents.collect(self._database)


async def _is_intact(stored: StoredBytes) -> bool:
    digest = hashlib.sha256()
    try:
        async with aclosing(stored.read(0, stored.size)) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(digest.update, piece)
    except StorageRefused:
        return False
    return digest.hexdigest() == stored.sha256


def _add(payload: Payload) -> Plan[None]:
    if (yield _KEEP(**payload_values(payload))):
        yield count(payload.conversation_id, payload_bytes(payload))


def payload_bytes(payload: Payload) -> int:
    """What a payload takes."""
    return ROW_BYTES + payload.size


# Writing a content again makes it young again, and what is younger than an hour is never collected.
_WRITE = Statement(
    """INSERT INTO tk_payload_contents (conversation_id, sha256, content, written_at)
    VALUES (:conversation_id, :sha256, :content, {now})
    ON CONFLICT (conversation_id, sha256) DO UPDATE SET content = excluded.content, written_at = {now}"""
)
# For a fork: within the database, so that the bytes do not pass through the application.
_COPY = Statement(
    """INSERT INTO tk_payload_contents (conversation_id, sha256, content, written_at)
    SELECT :target, sha256, content, {now} FROM tk_payload_contents
    WHERE conversation_id = :source AND sha256 = :sha256""",
    postgres="""INSERT INTO tk_payload_contents (conversation_id, sha256, content, written_at)
    SELECT :target::uuid, sha256, content, {now} FROM tk_payload_contents
    WHERE conversation_id = :source AND sha256 = :sha256""",
)
READ = Statement(
    """SELECT content FROM tk_payload_contents
    WHERE conversation_id = :conversation_id AND sha256 = :sha256"""
)
# For each piece, SQLite reads the whole content, so pieces are large. It has them in a folder by default.
READ_BYTES = 4 * 1024 * 1024
_PART = Statement(
    """SELECT substr(content, :first, :length) FROM tk_payload_contents
    WHERE conversation_id = :conversation_id AND sha256 = :sha256""",
    postgres="""SELECT substring(content FROM :first::int FOR :length::int) FROM tk_payload_contents
    WHERE conversation_id = :conversation_id AND sha256 = :sha256""",
)
_SIZE = Statement(
    """SELECT length(content) FROM tk_payload_contents
    WHERE conversation_id = :conversation_id AND sha256 = :sha256"""
)
COLLECTED_AT_ONCE = 500
# A content is written before its payload, so a young one may be about to get its name.
_UNNAMED = f"""content.written_at < {{now}} - {HOUR_MS} AND NOT EXISTS (
        SELECT 1 FROM tk_payloads AS payload
        WHERE payload.conversation_id = content.conversation_id AND payload.sha256 = content.sha256)"""
# A walk over all contents, some at a time: nobody knows which lost their payload in a crash.
WALK = Statement(
    f"""SELECT content.conversation_id, content.sha256, {_UNNAMED} FROM tk_payload_contents AS content
    WHERE (content.conversation_id, content.sha256) > (:conversation_id, :sha256)
    ORDER BY content.conversation_id, content.sha256 LIMIT :limit"""
)
# Checks again: a payload may have named the content since WALK has seen it.
_COLLECT = Statement(
    f"""DELETE FROM tk_payload_contents AS content
    WHERE content.conversation_id = :conversation_id AND content.sha256 = :sha256 AND {_UNNAMED}
    RETURNING sha256"""
)


class TableContents:
    """Contents in a table: every node has them, and purging their conversation cascades to them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, conversation_id: ConversationId, sha256: str, content: bytes) -> None:
        """Stores a content."""
        await self._database.execute(_WRITE(conversation_id=conversation_id, sha256=sha256, content=content))

    def write_within(self, conversation_id: ConversationId, sha256: str, content: bytes) -> Plan[None]:
        """Stores a content in a larger unit of work."""
        yield _WRITE(conversation_id=conversation_id, sha256=sha256, content=content)

    async def copy(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> None:
        """Nothing: `copy_within` does it."""

    def copy_within(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> Plan[None]:
        """Copies contents within the database."""
        for sha256 in names:
            yield _COPY(source=source, target=target, sha256=sha256)

    async def read(self, payload: Payload) -> bytes | None:
        """A content as stored."""
        rows = await self._database.fetch(
            READ(conversation_id=payload.conversation_id, sha256=payload.sha256)
        )
        return bytes(rows[0][0]) if rows else None

    async def size(self, payload: Payload) -> int | None:
        """How many bytes a content has."""
        rows = await self._database.fetch(
            _SIZE(conversation_id=payload.conversation_id, sha256=payload.sha256)
        )
        return rows[0][0] if rows else None

    async def read_part(self, payload: Payload, start: int, stop: int) -> AsyncGenerator[bytes]:
        """Some of its bytes, a piece at a time."""
        where = {"conversation_id": payload.conversation_id, "sha256": payload.sha256}
        for first in range(start, stop, READ_BYTES):
            length = min(READ_BYTES, stop - first)
            rows = await self._database.fetch(_PART(**where, first=first + 1, length=length))
            if not rows or len(rows[0][0]) < length:
                raise ends_early()
            yield bytes(rows[0][0])

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Nothing: the purge deleted them."""

    async def collect(self, database: Database) -> int:
        """Removes contents that no payload names."""
        removed, last = 0, {"conversation_id": FIRST_UUID, "sha256": ""}
        while found := await database.fetch(WALK(**last, limit=COLLECTED_AT_ONCE)):
            for conversation_id, sha256, is_unnamed in found:
                last = {"conversation_id": conversation_id, "sha256": sha256}
                if is_unnamed:
                    removed += len(await database.execute(_COLLECT(**last)))
        return removed


def payload_values(payload: Payload) -> dict[str, Any]:
    """A payload as a row."""
    return {name: getattr(payload, name) for name in Payload.__slots__}


def to_payload(row: Row) -> tuple[Payload, ContentId | None]:
    """A row as a payload, and where its bytes are if they are a file's."""
    id_, conversation_id, kind, media_type, file_name, size, sha256, created_at, content_id = row
    payload = Payload(
        id_, conversation_id, PayloadKind(kind), media_type, file_name, size, sha256, created_at
    )
    return payload, content_id
