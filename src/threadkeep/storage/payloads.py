"""Payloads in the database; their contents in a folder or in a table.

A content is written before its row, and the row before whatever refers to it; they are removed in the
opposite order. So a crash can leave contents that nothing names, but never a name without content.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from threadkeep.domain.ids import ConversationId, PayloadId, UserId, is_uuid
from threadkeep.domain.payload import Payload, PayloadKind, content_hash
from threadkeep.ports.payloads import Lost
from threadkeep.storage.columns import to_json
from threadkeep.storage.database import Database, Plan, Row, Statement, with_clock, with_ids

log = logging.getLogger("threadkeep.storage")

HOUR_MS = 60 * 60 * 1000
MISSING = Lost("The content is missing.")
DAMAGED = Lost("The content is damaged.")

_COLUMNS = "id, conversation_id, kind, media_type, file_name, size, sha256, created_at"
_INSERT = f"""INSERT INTO tk_payloads ({_COLUMNS})
    VALUES (:id, :conversation_id, :kind, :media_type, :file_name, :size, :sha256, :created_at)"""
ADD = Statement(_INSERT)
# A retry, after the reply to the first try was lost, finds the row.
_KEEP = Statement(f"{_INSERT} ON CONFLICT (id) DO NOTHING")


_OF_IDS = f"""SELECT {_COLUMNS} FROM tk_payloads
    WHERE id IN (IDS) AND conversation_id = :conversation_id"""
BY_ID = with_ids(_OF_IDS)
_ARTIFACTS = with_ids(f"{_OF_IDS} AND kind = 'artifact'")
NAMED = with_ids("SELECT conversation_id, sha256 FROM tk_payloads WHERE conversation_id IN (IDS)")
OF_CONVERSATION = Statement(
    f"""SELECT {_COLUMNS} FROM tk_payloads WHERE conversation_id = :conversation_id AND id > :after
    ORDER BY id LIMIT :limit"""
)
ARTIFACT = Statement(
    """SELECT payload.id, payload.conversation_id, payload.kind, payload.media_type, payload.file_name,
        payload.size, payload.sha256, payload.created_at
    FROM tk_payloads AS payload
    JOIN tk_conversations AS conversation ON conversation.id = payload.conversation_id
    WHERE payload.id = :id AND payload.kind = 'artifact' AND conversation.user_id = :user_id
        AND conversation.deleted_at IS NULL"""
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

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations."""
        ...

    async def collect(self, database: Database) -> int:
        """Removes contents older than an hour that no payload names."""
        ...

    # Files that no message has yet. Each has contents by name: its own, and those of its renditions.

    async def stage(self, file_id: PayloadId, contents: Mapping[str, Path]) -> None:
        """Stores the contents of a file that is about to be known, if they are outside the database."""
        ...

    def stage_within(self, file_id: PayloadId, contents: Mapping[str, Path]) -> Plan[None]:
        """The same in the unit of work that makes it known, if they are in the database."""
        ...

    def read_staged(self, file_id: PayloadId, name: str) -> AsyncGenerator[bytes]:
        """A content, in pieces; nothing if there is none."""
        ...

    async def take(
        self, file_id: PayloadId, conversation_id: ConversationId, hashes: Mapping[str, str]
    ) -> None:
        """Gives the contents to a conversation under their hashes, if they are outside the database."""
        ...

    def take_within(
        self, file_id: PayloadId, conversation_id: ConversationId, hashes: Mapping[str, str]
    ) -> Plan[None]:
        """The same in a unit of work, if they are in the database."""
        ...

    async def unstage(self, file_ids: Iterable[PayloadId]) -> None:
        """Removes the contents of files that are no longer known."""
        ...

    async def collect_staged(self, database: Database, known: Statement) -> int:
        """Removes what is left of files that are no longer known; `known` finds those that are."""
        ...


class SqlPayloads:
    """The payloads of a database."""

    def __init__(self, database: Database, contents: Contents) -> None:
        self._database = database
        self._contents = contents

    async def add(self, payload: Payload, content: bytes) -> None:
        """Stores a payload: first the content, then the row."""
        await self._contents.write(payload.conversation_id, payload.sha256, content)
        await self._database.execute(_KEEP(**payload_values(payload)))

    async def load(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The contents of a conversation's payloads, each checked against its hash."""
        found: dict[PayloadId, bytes | Lost] = dict.fromkeys(ids, MISSING)
        for payload in await self._fetch(BY_ID, conversation_id, found):
            content = await self._contents.read(payload)
            if content is not None:
                intact = await asyncio.to_thread(content_hash, content) == payload.sha256
                found[payload.id] = content if intact else DAMAGED
        for payload_id, content in found.items():
            if isinstance(content, Lost):
                log.error("couldn't load payload %s: %s", payload_id, content.reason)
        return found

    async def artifact(self, user_id: UserId, payload_id: PayloadId) -> Payload | None:
        """A file in one of the user's conversations that is not deleted."""
        rows = await self._database.fetch(ARTIFACT(id=payload_id, user_id=user_id))
        return to_payload(rows[0]) if rows else None

    async def artifacts(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, Payload]:
        """The records of a conversation's files."""
        return {payload.id: payload for payload in await self._fetch(_ARTIFACTS, conversation_id, ids)}

    async def _fetch(
        self, statement: Statement, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> list[Payload]:
        asked = [it for it in ids if is_uuid(it)]  # an artifact's id can be another engine's
        if not asked:
            return []
        query = statement(conversation_id=conversation_id, ids=to_json(asked))
        return [to_payload(row) for row in await self._database.fetch(query)]

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations that have been purged."""
        await self._contents.forget(conversation_ids)

    async def collect(self) -> int:
        """Removes contents that no payload names."""
        return await self._contents.collect(self._database)


_WRITE = with_clock(
    """INSERT INTO tk_payload_contents (conversation_id, sha256, content, written_at)
    VALUES (:conversation_id, :sha256, :content, {now})
    ON CONFLICT (conversation_id, sha256) DO UPDATE SET content = excluded.content, written_at = {now}"""
)
_COPY = with_clock(
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
COLLECT = with_clock(
    f"""DELETE FROM tk_payload_contents WHERE written_at < {{now}} - {HOUR_MS} AND NOT EXISTS (
        SELECT 1 FROM tk_payloads AS payload
        WHERE payload.conversation_id = tk_payload_contents.conversation_id
            AND payload.sha256 = tk_payload_contents.sha256)
    RETURNING sha256"""
)


PIECE_BYTES = 1024 * 1024
_ADD_PIECE = Statement(
    """INSERT INTO tk_file_pieces (file_id, name, number, content)
    VALUES (:file_id, :name, :number, :content)"""
)
_PIECE = Statement(
    "SELECT content FROM tk_file_pieces WHERE file_id = :file_id AND name = :name AND number = :number"
)
_PIECES = Statement(
    "SELECT content FROM tk_file_pieces WHERE file_id = :file_id AND name = :name ORDER BY number"
)
_TAKE = with_clock(
    "SELECT 1",
    postgres="""INSERT INTO tk_payload_contents (conversation_id, sha256, content, written_at)
    SELECT :conversation_id::uuid, :sha256, string_agg(content, ''::bytea ORDER BY number), {now}
    FROM tk_file_pieces WHERE file_id = :file_id AND name = :name
    ON CONFLICT (conversation_id, sha256) DO UPDATE SET written_at = {now}""",
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

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Nothing: the purge deleted them."""

    async def collect(self, database: Database) -> int:
        """Removes contents that no payload names."""
        return len(await database.execute(COLLECT()))

    async def stage(self, file_id: PayloadId, contents: Mapping[str, Path]) -> None:
        """Nothing: `stage_within` does it."""

    def stage_within(self, file_id: PayloadId, contents: Mapping[str, Path]) -> Plan[None]:
        """Stores contents in pieces."""
        for name, path in contents.items():
            with path.open("rb") as file:
                for number in count():
                    if not (piece := file.read(PIECE_BYTES)):
                        break
                    yield _ADD_PIECE(file_id=file_id, name=name, number=number, content=piece)

    async def read_staged(self, file_id: PayloadId, name: str) -> AsyncGenerator[bytes]:
        """A content, in pieces."""
        for number in count():
            rows = await self._database.fetch(_PIECE(file_id=file_id, name=name, number=number))
            if not rows:
                return
            yield bytes(rows[0][0])

    async def take(
        self, file_id: PayloadId, conversation_id: ConversationId, hashes: Mapping[str, str]
    ) -> None:
        """Nothing: `take_within` does it."""

    def take_within(
        self, file_id: PayloadId, conversation_id: ConversationId, hashes: Mapping[str, str]
    ) -> Plan[None]:
        """Gives contents to a conversation within the database."""
        for name, sha256 in hashes.items():
            if self._database.dialect == "postgres":
                yield _TAKE(file_id=file_id, name=name, conversation_id=conversation_id, sha256=sha256)
                continue
            # SQLite has no aggregate for bytes, and runs in this process anyway.
            pieces = yield _PIECES(file_id=file_id, name=name)
            content = b"".join(bytes(piece) for (piece,) in pieces)
            yield _WRITE(conversation_id=conversation_id, sha256=sha256, content=content)

    async def unstage(self, file_ids: Iterable[PayloadId]) -> None:
        """Nothing: deleted with their file."""

    async def collect_staged(self, database: Database, known: Statement) -> int:
        """Nothing is left over."""
        return 0


def payload_values(payload: Payload) -> dict[str, Any]:
    """A payload as a row."""
    return {name: getattr(payload, name) for name in Payload.__slots__}


def to_payload(row: Row) -> Payload:
    """A row as a payload."""
    id_, conversation_id, kind, media_type, file_name, size, sha256, created_at = row
    return Payload(id_, conversation_id, PayloadKind(kind), media_type, file_name, size, sha256, created_at)
