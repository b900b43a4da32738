"""Files of messages in the database: each belongs to its user, and any of their conversations can use it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import LimitNotAllowed, StorageConflict
from threadkeep.domain.ids import FIRST_UUID, LAST_UUID, ContentId, ConversationId, PayloadId, UserId
from threadkeep.domain.uploaded_file import KeptRendition, PreparedFile, UploadedFile
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.documents.documents import document_totals
from threadkeep.storage.file_contents import FileContents, StoredBytes
from threadkeep.storage.file_rows import (
    FILE_BYTES,
    FILE_COLUMNS,
    USE,
    NewContent,
    add_contents,
    add_file,
    contents_of,
    forget_some_expired,
    forget_unsent,
    known_contents,
    lock_user,
)
from threadkeep.storage.text_bytes import text_bytes_of
from threadkeep.storage.users import ENSURE_USER


@dataclass(frozen=True, slots=True)
class Room:
    """What a user has, with the files that are being added; equal bytes count once."""

    unsent: int
    """How many files wait for a message."""
    unsent_bytes: int
    total_bytes: int
    """The bytes of all files, sent or not, in all their forms, of documents, and of all texts."""


CheckRoom = Callable[[Room], None]
"""Raises LimitNotAllowed if a user may not have that much."""


# Files that a user may read and send again: not those that only deleted conversations use.
_IS_VISIBLE = """user_id = :user_id AND (unsent_since IS NOT NULL OR EXISTS (
        SELECT 1 FROM tk_file_uses AS used
        JOIN tk_conversations AS conversation ON conversation.id = used.conversation_id
        WHERE used.file_id = tk_files.id AND conversation.deleted_at IS NULL))"""
VISIBLE = Statement(f"SELECT {FILE_COLUMNS} FROM tk_files WHERE id IN ({{ids}}) AND {_IS_VISIBLE}")
# In the order of their ids, which begin with the time, from either end.
PAGE = Statement(
    f"SELECT {FILE_COLUMNS} FROM tk_files WHERE {_IS_VISIBLE} AND id > :after ORDER BY id LIMIT :limit"
)
PAGE_NEWEST_FIRST = Statement(
    f"SELECT {FILE_COLUMNS} FROM tk_files WHERE {_IS_VISIBLE} AND id < :after ORDER BY id DESC LIMIT :limit"
)
# A conversation can read only the files that it uses.
USED = Statement(
    f"""SELECT {FILE_COLUMNS} FROM tk_files WHERE id IN ({{ids}}) AND EXISTS (
        SELECT 1 FROM tk_file_uses AS used
        WHERE used.file_id = tk_files.id AND used.conversation_id = :conversation_id)"""
)
# Newest first, since ids begin with the time.
LATEST_USED = Statement(
    f"""SELECT {FILE_COLUMNS} FROM tk_files
    WHERE id IN (SELECT file_id FROM tk_file_uses WHERE conversation_id = :conversation_id)
    ORDER BY id DESC LIMIT :limit"""
)
# Decides whether the agent gets the tool that reads files.
ANY_USED = Statement("SELECT 1 FROM tk_file_uses WHERE conversation_id = :conversation_id LIMIT 1")
# For the limits on files that wait for a message. Files with the same bytes count their size once.
UNSENT_TOTALS = Statement(
    """SELECT CAST(COALESCE(SUM(files), 0) AS bigint), CAST(COALESCE(SUM(size), 0) AS bigint) FROM (
        SELECT COUNT(*) AS files, MAX(size) AS size FROM tk_files
        WHERE user_id = :user_id AND unsent_since IS NOT NULL GROUP BY sha256) AS contents"""
)
# Whether the file exists already: a retry, an import or a fork may add it again.
_OWNER = Statement("SELECT user_id FROM tk_files WHERE id = :id")
# A form of a file, the original or a rendition, leads to its bytes.
_CONTENT = Statement(
    """SELECT content.id, content.size, content.sha256 FROM tk_file_forms AS form
    JOIN tk_contents AS content ON content.id = form.content_id WHERE form.id = :id"""
)

_decode = msgspec.json.Decoder(dict[str, KeptRendition]).decode


class SqlFiles:
    """Files of messages. Each belongs to a user, who can use it in several conversations.

    A file that no message uses expires; the others are deleted with the last conversation that uses them.
    The same bytes of one user are stored once.
    """

    def __init__(self, database: Database, contents: FileContents) -> None:
        self._database = database
        self._contents = contents

    async def add(self, user_id: UserId, prepared: Sequence[PreparedFile], check_room: CheckRoom) -> None:
        """Stores files with their renditions, all or none; StorageError if that fails."""
        await self._store(prepared, lambda contents: self._add(user_id, prepared, contents, check_room))

    async def add_returned(self, conversation: Conversation, prepared: PreparedFile) -> None:
        """Stores an image that a tool returned; storing it again, after a lost reply, changes nothing."""
        await self._store([prepared], lambda contents: self._add_returned(conversation, prepared, contents))

    async def has_any(self, conversation_id: ConversationId) -> bool:
        """Whether any message of a conversation has files."""
        return bool(await self._database.fetch(ANY_USED(conversation_id=conversation_id)))

    async def visible(self, user_id: UserId, ids: Iterable[PayloadId]) -> Mapping[PayloadId, UploadedFile]:
        """The user's files that wait for a message or are in a conversation that is not deleted, by id."""
        rows = await self._database.fetch(VISIBLE(user_id=user_id, ids=to_json(list(ids))))
        return {(file := to_file(row)).id: file for row in rows}

    async def page(
        self, user_id: UserId, *, after: PayloadId | None, newest_first: bool, limit: int
    ) -> Sequence[UploadedFile]:
        """The same files in the order in which they were added, after one of them."""
        statement, start = (PAGE_NEWEST_FIRST, LAST_UUID) if newest_first else (PAGE, FIRST_UUID)
        rows = await self._database.fetch(statement(user_id=user_id, after=after or start, limit=limit))
        return [to_file(row) for row in rows]

    async def forget(self, user_id: UserId, file_id: PayloadId) -> bool:
        """Deletes a user's file if no message uses it; returns whether it did."""
        is_gone, freed = await self._database.write(lambda: forget_unsent(user_id, file_id))
        await self._contents.remove(freed)
        return is_gone

    async def used(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, UploadedFile]:
        """A conversation's files, by id."""
        rows = await self._database.fetch(USED(conversation_id=conversation_id, ids=to_json(list(ids))))
        return {(file := to_file(row)).id: file for row in rows}

    async def latest(self, conversation_id: ConversationId, *, limit: int) -> Sequence[UploadedFile]:
        """A conversation's files, newest first."""
        query = LATEST_USED(conversation_id=conversation_id, limit=limit)
        return [to_file(row) for row in await self._database.fetch(query)]

    async def open(self, form_id: PayloadId, size: int) -> StoredBytes | None:
        """The bytes of a file, by its id or a rendition's; None if they are lost."""
        rows = await self._database.fetch(_CONTENT(id=form_id))
        if not rows or await self._contents.size(rows[0][0]) != size:
            return None
        content_id, size, sha256 = rows[0]
        return StoredBytes(size, sha256, lambda start, stop: self._contents.read(content_id, start, stop))

    async def forget_unsent(self, before: int) -> int:
        """Deletes files that no message used in time, some at a time, and leftovers of a crash."""
        forgotten, due = 0, 1
        while due:
            due, freed = await self._database.write(lambda: forget_some_expired(before))
            await self._contents.remove(freed)
            forgotten += due
        return forgotten + await self._contents.collect()

    async def _store(
        self,
        prepared: Sequence[PreparedFile],
        plan: Callable[[Mapping[str, NewContent]], Plan[Mapping[str, ContentId]]],
    ) -> None:
        """Stages contents, then runs the plan that names them.

        If it is unknown whether the plan took effect, they stay: `collect` removes what has no name.
        """
        contents = contents_of(it.file for it in prepared)
        await self._contents.stage({contents[sha256].id: path for sha256, path in _paths(prepared).items()})
        try:
            kept = await self._database.write(lambda: plan(contents))
        except LimitNotAllowed:
            await self._contents.remove(it.id for it in contents.values())
            raise
        await self._contents.settle(
            {it.id: kept[sha256] for sha256, it in contents.items() if kept[sha256] != it.id}
        )

    def _add(
        self,
        user_id: UserId,
        prepared: Sequence[PreparedFile],
        contents: Mapping[str, NewContent],
        check_room: CheckRoom,
    ) -> Plan[Mapping[str, ContentId]]:
        yield ENSURE_USER(id=user_id, now=prepared[0].file.created_at)
        yield lock_user(user_id)
        kept = yield from add_contents(user_id, contents)
        for it in prepared:
            yield from add_file(user_id, it.file, kept, it.file.created_at)
        ((unsent, unsent_bytes),) = yield UNSENT_TOTALS(user_id=user_id)
        ((file_bytes,),) = yield FILE_BYTES(user_id=user_id)
        _, document_bytes = yield from document_totals(user_id)
        texts = yield from text_bytes_of(user_id)
        check_room(Room(unsent, unsent_bytes, file_bytes + document_bytes + texts))
        yield from self._write_new(contents, kept, _paths(prepared))
        return kept

    def _add_returned(
        self, conversation: Conversation, prepared: PreparedFile, contents: Mapping[str, NewContent]
    ) -> Plan[Mapping[str, ContentId]]:
        user_id, file = conversation.user_id, prepared.file
        yield lock_user(user_id)
        if (yield _OWNER(id=file.id)):
            return (yield from known_contents(user_id, contents))
        kept = yield from add_contents(user_id, contents)
        yield from add_file(user_id, file, kept, None)
        yield USE(conversation_id=conversation.id, ids=to_json([file.id]))
        yield from self._write_new(contents, kept, _paths([prepared]))
        return kept

    def _write_new(
        self, contents: Mapping[str, NewContent], kept: Mapping[str, ContentId], paths: Mapping[str, Path]
    ) -> Plan[None]:
        for sha256, content in contents.items():
            if kept[sha256] == content.id:
                yield from self._contents.write_within(content.id, lambda path=paths[sha256]: path.open("rb"))


def add_imported(
    conversation: Conversation, file: UploadedFile, contents: Mapping[str, NewContent]
) -> Plan[dict[str, ContentId]]:
    """A file of an imported conversation; returns the ids of its contents, known and new ones, by hash."""
    yield lock_user(conversation.user_id)
    kept = yield from add_contents(conversation.user_id, contents)
    yield from _add_used(conversation, [file], kept)
    return kept


def add_forked(conversation: Conversation, files: Sequence[UploadedFile]) -> Plan[set[PayloadId]]:
    """Files of a fork, with the same contents as the original's; returns the payloads that they are."""
    yield lock_user(conversation.user_id)
    known = yield from known_contents(conversation.user_id, contents_of(files))
    # The others are files of tools, whose contents are copied as values are.
    own = [file for file in files if known.keys() >= {*file.hashes.values()}]
    yield from _add_used(conversation, own, known)
    return {payload.id for file in own for payload in file.payloads(conversation.id)}


def _add_used(
    conversation: Conversation, files: Collection[UploadedFile], contents: Mapping[str, ContentId]
) -> Plan[None]:
    for file in files:
        owners = yield _OWNER(id=file.id)
        if not owners:
            yield from add_file(conversation.user_id, file, contents, None)
        elif owners[0][0] != conversation.user_id:
            raise StorageConflict(f"The file {file.id} exists already.")
    yield USE(conversation_id=conversation.id, ids=to_json([file.id for file in files]))


def files_in(whole: WholeConversation) -> Iterable[UploadedFile]:
    """The files of a conversation's messages, each once."""
    known = {payload.id: payload for payload in whole.payloads}
    parts = {part.file_id: part for message in whole.messages for part in message.files}
    for part in parts.values():
        if {part.file_id, *part.refs.values()} <= known.keys():
            yield UploadedFile.of(part, known)


def _paths(prepared: Sequence[PreparedFile]) -> dict[str, Path]:
    """Where contents are, by hash."""
    return {it.file.hashes[name]: path for it in prepared for name, path in it.contents.items()}


def to_file(row: Row | Sequence[Any]) -> UploadedFile:
    """A row of `tk_files`, with FILE_COLUMNS."""
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
