"""Payloads in the database; their contents in a folder or in a table.

A content is written before its row, and the row before whatever refers to it; they are removed in the
opposite order. So a crash leaves contents that nobody names, never a name without content.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from threadkeep.domain.ids import ConversationId, PayloadId, UserId
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
# Tried again when the answer was lost on the way, it is there already.
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
    """Where the bytes lie, by conversation and hash."""

    async def write(self, conversation_id: ConversationId, sha256: str, content: bytes) -> None:
        """Keeps a content; it is durable when this returns."""
        ...

    def write_within(self, conversation_id: ConversationId, sha256: str, content: bytes) -> Plan[None]:
        """The same in a unit of work that makes the conversation; a file stays where that fails."""
        ...

    async def copy(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> None:
        """Copies contents to a conversation that is about to be made, if they lie outside the database."""
        ...

    def copy_within(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> Plan[None]:
        """The same in the unit of work that makes the conversation, if they lie in the database."""
        ...

    async def read(self, payload: Payload) -> bytes | None:
        """A content as it lies there; None where there is none."""
        ...

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the contents of conversations."""
        ...

    async def collect(self, database: Database) -> int:
        """Removes contents of more than an hour ago that no payload names."""
        ...


class SqlPayloads:
    """The payloads of a database."""

    def __init__(self, database: Database, contents: Contents) -> None:
        self._database = database
        self._contents = contents

    async def add(self, payload: Payload, content: bytes) -> None:
        """Keeps a payload: first the content, then the row."""
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
                log.error("payload %s cannot be loaded: %s", payload_id, content.reason)
        return found

    async def artifact(self, user_id: UserId, payload_id: PayloadId) -> Payload | None:
        """A file in a conversation of the user that is not deleted."""
        rows = await self._database.fetch(ARTIFACT(id=payload_id, user_id=user_id))
        return to_payload(rows[0]) if rows else None

    async def artifacts(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, Payload]:
        """What is known of a conversation's files."""
        return {payload.id: payload for payload in await self._fetch(_ARTIFACTS, conversation_id, ids)}

    async def _fetch(
        self, statement: Statement, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> list[Payload]:
        asked = list(ids)
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


class TableContents:
    """Contents in a table: every node has them, and they go with their conversation by cascade."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, conversation_id: ConversationId, sha256: str, content: bytes) -> None:
        """Keeps a content."""
        await self._database.execute(_WRITE(conversation_id=conversation_id, sha256=sha256, content=content))

    def write_within(self, conversation_id: ConversationId, sha256: str, content: bytes) -> Plan[None]:
        """Keeps a content in a unit of work that does more."""
        yield _WRITE(conversation_id=conversation_id, sha256=sha256, content=content)

    async def copy(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> None:
        """They lie in the database."""

    def copy_within(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> Plan[None]:
        """Copies contents without their leaving the database."""
        for sha256 in names:
            yield _COPY(source=source, target=target, sha256=sha256)

    async def read(self, payload: Payload) -> bytes | None:
        """A content as it lies there."""
        rows = await self._database.fetch(
            READ(conversation_id=payload.conversation_id, sha256=payload.sha256)
        )
        return bytes(rows[0][0]) if rows else None

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """They are gone already."""

    async def collect(self, database: Database) -> int:
        """Removes contents that no payload names."""
        return len(await database.execute(COLLECT()))


def payload_values(payload: Payload) -> dict[str, Any]:
    """A payload as a row."""
    return {name: getattr(payload, name) for name in Payload.__slots__}


def to_payload(row: Row) -> Payload:
    """A row as a payload."""
    id_, conversation_id, kind, media_type, file_name, size, sha256, created_at = row
    return Payload(id_, conversation_id, PayloadKind(kind), media_type, file_name, size, sha256, created_at)
