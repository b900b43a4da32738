"""Files of messages in the database; a folder or a table holds the contents of those not sent yet."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import KeptRendition, UploadedFile, check_none_expired
from threadkeep.ports.exchange import WholeConversation
from threadkeep.ports.files import CheckRoom
from threadkeep.storage.columns import to_json
from threadkeep.storage.database import Database, Plan, Query, Row, Rows, Statement, with_ids
from threadkeep.storage.payloads import Contents, payload_values
from threadkeep.storage.users import ENSURE_USER

_COLUMNS = "id, file_name, media_type, size, sha256, created_at, width, height, pages, renditions"
# Concurrent uploads of one user are counted one after the other.
_LOCK_USER = Statement(
    "SELECT 1 FROM tk_users WHERE id = :user_id",
    postgres="SELECT 1 FROM tk_users WHERE id = :user_id FOR NO KEY UPDATE",
)
_COUNT = Statement(
    """SELECT COUNT(*), COALESCE(SUM(size), 0) FROM tk_files
    WHERE user_id = :user_id AND conversation_id IS NULL"""
)
_INSERT = f"""INSERT INTO tk_files (user_id, conversation_id, {_COLUMNS})
    VALUES (:user_id, :conversation_id, :id, :file_name, :media_type, :size, :sha256, :created_at, :width,
        :height, :pages, :renditions)"""
_ADD = Statement(_INSERT)
# A retry, after the reply to the first try was lost, finds the row.
_KEEP = Statement(f"{_INSERT} ON CONFLICT (id) DO NOTHING")
_UNSENT = with_ids(
    f"""SELECT {_COLUMNS} FROM tk_files
    WHERE id IN (IDS) AND user_id = :user_id AND conversation_id IS NULL"""
)
_SENT = with_ids(f"SELECT {_COLUMNS} FROM tk_files WHERE id IN (IDS) AND conversation_id = :conversation_id")
_ANY_SENT = Statement("SELECT 1 FROM tk_files WHERE conversation_id = :conversation_id LIMIT 1")
_SENT_BY = Statement(
    f"""SELECT {", ".join(f"file.{it}" for it in _COLUMNS.split(", "))}, file.conversation_id
    FROM tk_files AS file JOIN tk_conversations AS conversation ON conversation.id = file.conversation_id
    WHERE file.id = :id AND conversation.user_id = :user_id AND conversation.deleted_at IS NULL"""
)
# A file that was given to another conversation but never sent there moves to the one that it is sent in.
_GIVE = Statement(
    """INSERT INTO tk_payloads (id, conversation_id, kind, media_type, file_name, size, sha256, created_at)
    VALUES (:id, :conversation_id, :kind, :media_type, :file_name, :size, :sha256, :created_at)
    ON CONFLICT (id) DO UPDATE SET conversation_id = excluded.conversation_id
    WHERE EXISTS (SELECT 1 FROM tk_files WHERE tk_files.id = :file_id AND conversation_id IS NULL)"""
)
# Sending, giving and expiring a file happen one after the other.
_HOLD = with_ids(
    """SELECT id, conversation_id FROM tk_files
    WHERE id IN (IDS) AND (conversation_id IS NULL OR conversation_id = :conversation_id)""",
    postgres=" ORDER BY id FOR UPDATE",
)
# Not if it was given to another conversation since.
_MARK_SENT = with_ids(
    """UPDATE tk_files SET conversation_id = :conversation_id
    WHERE id IN (IDS) AND (conversation_id IS NULL OR conversation_id = :conversation_id)
        AND EXISTS (SELECT 1 FROM tk_payloads AS payload
            WHERE payload.id = tk_files.id AND payload.conversation_id = :conversation_id)
    RETURNING id"""
)
_FORGET_PIECES = with_ids("DELETE FROM tk_file_pieces WHERE file_id IN (IDS)")
_FORGET_EXPIRED = Statement(
    """DELETE FROM tk_files WHERE conversation_id IS NULL AND id IN (
        SELECT id FROM tk_files WHERE conversation_id IS NULL AND created_at < :before
        ORDER BY created_at LIMIT 100)
    RETURNING id, renditions"""
)
_FORGET_PAYLOADS = with_ids("DELETE FROM tk_payloads WHERE id IN (IDS)")
# Parts name their files, so the parts are searched for the id: this is rare, and in one conversation only.
_FORGET_UNUSED = with_ids(
    """DELETE FROM tk_files WHERE id IN (IDS) AND conversation_id = :conversation_id
    AND NOT EXISTS (SELECT 1 FROM tk_messages AS message WHERE message.conversation_id = :conversation_id
        AND message.parts LIKE '%' || CAST(tk_files.id AS text) || '%')
    AND NOT EXISTS (SELECT 1 FROM tk_queued AS queued WHERE queued.conversation_id = :conversation_id
        AND queued.files LIKE '%' || CAST(tk_files.id AS text) || '%')
    RETURNING id, renditions"""
)
_WAITING = with_ids("SELECT id FROM tk_files WHERE id IN (IDS) AND conversation_id IS NULL")

_decode = msgspec.json.Decoder(dict[str, KeptRendition]).decode


class SqlFiles:
    """The files of messages in a database."""

    def __init__(self, database: Database, contents: Contents) -> None:
        self._database = database
        self._contents = contents

    async def add(
        self, user_id: UserId, file: UploadedFile, contents: Mapping[str, Path], check_room: CheckRoom
    ) -> None:
        """Stores a user's file: its contents, then its row."""
        await self._contents.stage(file.id, contents)
        await self._database.write(lambda: self._add(user_id, file, contents, check_room))

    def _add(
        self, user_id: UserId, file: UploadedFile, contents: Mapping[str, Path], check_room: CheckRoom
    ) -> Plan[None]:
        yield ENSURE_USER(id=user_id, now=file.created_at)
        yield _LOCK_USER(user_id=user_id)
        ((count, size),) = yield _COUNT(user_id=user_id)
        check_room(count, int(size))
        yield _ADD(user_id=user_id, conversation_id=None, **_values(file))
        yield from self._contents.stage_within(file.id, contents)

    async def add_returned(self, conversation: Conversation, file: UploadedFile) -> None:
        """Records an image that a tool returned; its contents are payloads of the conversation already."""
        whose = {"user_id": conversation.user_id, "conversation_id": conversation.id}
        await self._database.execute(_KEEP(**whose, **_values(file)))

    async def has_any(self, conversation_id: ConversationId) -> bool:
        """Whether any message of a conversation has files."""
        return bool(await self._database.fetch(_ANY_SENT(conversation_id=conversation_id)))

    async def unsent(self, user_id: UserId, ids: Iterable[PayloadId]) -> Mapping[PayloadId, UploadedFile]:
        """The user's files that no message has yet, by id."""
        rows = await self._database.fetch(_UNSENT(user_id=user_id, ids=to_json(list(ids))))
        return {(file := _to_file(row)).id: file for row in rows}

    async def sent(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, UploadedFile]:
        """A conversation's files, by id."""
        rows = await self._database.fetch(_SENT(conversation_id=conversation_id, ids=to_json(list(ids))))
        return {(file := _to_file(row)).id: file for row in rows}

    async def sent_by(
        self, user_id: UserId, file_id: PayloadId
    ) -> tuple[UploadedFile, ConversationId] | None:
        """A file in one of the user's conversations that is not deleted, and that conversation's id."""
        rows = await self._database.fetch(_SENT_BY(id=file_id, user_id=user_id))
        if not rows:
            return None
        *columns, conversation_id = rows[0]
        return _to_file(columns), ConversationId(conversation_id)

    def read(self, file: UploadedFile, name: str) -> AsyncGenerator[bytes]:
        """The content of a file that no message has yet, or of a rendition, in pieces."""
        return self._contents.read_staged(file.id, name)

    async def give(self, files: Sequence[UploadedFile], conversation_id: ConversationId) -> None:
        """Copies files to a conversation: the contents, then the rows."""
        for file in files:
            await self._contents.take(file.id, conversation_id, file.hashes)
        if files:
            await self._database.write(lambda: self._give(files, conversation_id))

    def _give(self, files: Sequence[UploadedFile], conversation_id: ConversationId) -> Plan[None]:
        ids = [file.id for file in files]
        held = yield _HOLD(conversation_id=conversation_id, ids=to_json(ids))
        check_none_expired(ids, (id_ for id_, _ in held))
        sent = {id_ for id_, had_by in held if had_by is not None}
        for file in (it for it in files if it.id not in sent):
            yield from self._contents.take_within(file.id, conversation_id, file.hashes)
            for payload in file.payloads(conversation_id):
                yield _GIVE(**payload_values(payload), file_id=file.id)

    async def forget_contents(self, ids: Iterable[PayloadId]) -> None:
        """Removes what is left of purged files."""
        await self._contents.unstage(ids)

    async def forget_unsent(self, created_before: int) -> int:
        """Removes files that were not sent in time, and leftovers of a crash."""
        forgotten = 0
        while ids := await self._database.write(lambda: _forget_some(created_before)):
            await self._contents.unstage(ids)
            forgotten += len(ids)
        return forgotten + await self._contents.collect_staged(self._database, _WAITING)


def _forget_some(created_before: int) -> Plan[list[PayloadId]]:
    rows = yield _FORGET_EXPIRED(before=created_before)
    if rows:
        yield _forget_payloads(rows)
    return [PayloadId(id_) for id_, _ in rows]


def _forget_payloads(rows: Rows) -> Query:
    """Removes files and their renditions as payloads; their contents are collected later."""
    renditions = (rendition.id for _, raw in rows for rendition in _decode(raw).values())
    return _FORGET_PAYLOADS(ids=to_json([*(id_ for id_, _ in rows), *renditions]))


def forget_unused(conversation_id: ConversationId, files: Iterable[FilePart]) -> Plan[None]:
    """Removes those files of a message that no other message of its conversation has."""
    if ids := [part.file_id for part in files]:
        rows = yield _FORGET_UNUSED(conversation_id=conversation_id, ids=to_json(ids))
        if rows:
            yield _forget_payloads(rows)


def mark_sent(conversation_id: ConversationId, files: Iterable[FilePart]) -> Plan[None]:
    """Assigns files to their conversation permanently, in the unit of work that stores the message.

    Raises FileNotFound if one has expired since it was given, or another conversation has it.
    """
    if ids := [part.file_id for part in files]:
        yield _HOLD(conversation_id=conversation_id, ids=to_json(ids))
        marked = yield _MARK_SENT(conversation_id=conversation_id, ids=to_json(ids))
        check_none_expired(ids, (id_ for (id_,) in marked))
        yield _FORGET_PIECES(ids=to_json(ids))


def add_sent(whole: WholeConversation) -> Plan[None]:
    """The files of an imported or forked conversation."""
    conversation, added = whole.conversation, set[PayloadId]()
    known = {payload.id: payload for payload in whole.payloads}
    for message in whole.messages:
        for part in message.files:
            if part.file_id not in added and {part.file_id, *part.refs.values()} <= known.keys():
                added.add(part.file_id)
                file = UploadedFile.of(part, known)
                whose = {"user_id": conversation.user_id, "conversation_id": conversation.id}
                yield _ADD(**whose, **_values(file))


def _values(file: UploadedFile) -> dict[str, Any]:
    values = {name: getattr(file, name) for name in UploadedFile.__slots__}
    return values | {"renditions": to_json(file.renditions)}


def _to_file(row: Row | Sequence[Any]) -> UploadedFile:
    id_, file_name, media_type, size, sha256, created_at, width, height, pages, renditions = row
    return UploadedFile(
        id=PayloadId(id_),
        file_name=file_name,
        media_type=media_type,
        size=size,
        sha256=sha256,
        created_at=created_at,
        width=width,
        height=height,
        pages=pages,
        renditions=_decode(renditions),
    )
