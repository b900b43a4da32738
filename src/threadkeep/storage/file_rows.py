"""Rows of files, for the units of work that add, use and delete them.

Adding contents locks their user first, and reusing or deleting a content locks its row, so a content is never
deleted while a file that has it is being added. Rows are locked in the order of their ids.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.ids import ContentId, ConversationId, PayloadId, UserId, new_uuid
from threadkeep.domain.parts import FilePart
from threadkeep.domain.uploaded_file import UploadedFile, check_none_expired
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Plan, Query, Statement

FILE_COLUMNS = "id, file_name, media_type, size, sha256, created_at, width, height, pages, renditions"

# Two uploads of the same bytes would otherwise both try to add them. `NO KEY`: the user's turns do not wait.
_LOCK_USER = Statement("SELECT 1 FROM tk_users WHERE id = :user_id", locks="FOR NO KEY UPDATE")
# Locked on PostgreSQL, so that no content is deleted between being found here and being used.
KNOWN_CONTENTS = Statement(
    """SELECT sha256, id FROM tk_contents
    WHERE user_id = :user_id AND sha256 IN (SELECT value FROM json_each(:hashes))""",
    postgres="""SELECT sha256, id FROM tk_contents
    WHERE user_id = :user_id AND sha256 IN (SELECT value FROM json_array_elements_text(:hashes::json))
    ORDER BY id FOR UPDATE""",
)
# A content is a user's bytes, kept once. A file has several forms, such as renditions of an image, and each
# form names its content.
_ADD_CONTENT = Statement(
    "INSERT INTO tk_contents (id, user_id, sha256, size) VALUES (:id, :user_id, :sha256, :size)"
)
_ADD_FILE = Statement(
    f"""INSERT INTO tk_files (user_id, unsent_since, {FILE_COLUMNS})
    VALUES (:user_id, :unsent_since, :id, :file_name, :media_type, :size, :sha256, :created_at, :width,
        :height, :pages, :renditions)"""
)
_ADD_FORM = Statement(
    """INSERT INTO tk_file_forms (id, file_id, content_id, kind, media_type)
    VALUES (:id, :file_id, :content_id, :kind, :media_type)"""
)
# What counts against the user's limit: bytes that several files share count once.
FILE_BYTES = Statement(
    "SELECT CAST(COALESCE(SUM(size), 0) AS bigint) FROM tk_contents WHERE user_id = :user_id"
)

# Sending, expiring and purging a file happen one after the other.
_HOLD = Statement(
    """SELECT id FROM tk_files WHERE id IN ({ids})
    AND user_id = (SELECT user_id FROM tk_conversations WHERE id = :conversation_id)""",
    locks="ORDER BY id FOR UPDATE",
)
# A file that a conversation uses no longer expires; it is deleted when nothing uses it.
USE = Statement(
    """INSERT INTO tk_file_uses (conversation_id, file_id)
    SELECT :conversation_id, value FROM json_each(:ids) WHERE TRUE ON CONFLICT DO NOTHING""",
    postgres="""INSERT INTO tk_file_uses (conversation_id, file_id)
    SELECT :conversation_id::uuid, value::uuid FROM json_array_elements_text(:ids::json)
    ON CONFLICT DO NOTHING""",
)
_MARK_SENT = Statement(
    "UPDATE tk_files SET unsent_since = NULL WHERE id IN ({ids}) AND unsent_since IS NOT NULL"
)

# Before a purge removes their uses: afterwards nobody knows which files they were.
LOCK_USED_IN = Statement(
    """SELECT id FROM tk_files
    WHERE id IN (SELECT file_id FROM tk_file_uses WHERE conversation_id IN ({ids}) LIMIT :limit)""",
    locks="ORDER BY id FOR UPDATE",
)
_FORGET_USES = Statement(
    """DELETE FROM tk_file_uses WHERE conversation_id IN ({ids})
    AND file_id IN (SELECT value FROM json_each(:files))""",
    postgres="""DELETE FROM tk_file_uses WHERE conversation_id IN ({ids})
    AND file_id IN (SELECT value::uuid FROM json_array_elements_text(:files::json))""",
)
_SOME_OF_USER = Statement("SELECT id FROM tk_files WHERE user_id = :user_id LIMIT :limit")
_FORGET_FILES = Statement("DELETE FROM tk_files WHERE id IN ({ids}) RETURNING id")
# Parts name their files, so the parts are searched for the id: this is rare, and in one conversation only.
# Those of a reply that is being written are in its turn's log.
_STOP_USING = Statement(
    """DELETE FROM tk_file_uses WHERE file_id IN ({ids}) AND conversation_id = :conversation_id
    AND NOT EXISTS (SELECT 1 FROM tk_messages AS message WHERE message.conversation_id = :conversation_id
        AND message.parts LIKE '%' || CAST(tk_file_uses.file_id AS text) || '%')
    AND NOT EXISTS (SELECT 1 FROM tk_queued AS queued WHERE queued.conversation_id = :conversation_id
        AND queued.files LIKE '%' || CAST(tk_file_uses.file_id AS text) || '%')
    AND NOT EXISTS (SELECT 1 FROM tk_conversations AS conversation
        JOIN tk_turn_chunks AS chunk ON chunk.turn_id = conversation.active_turn_id
        WHERE conversation.id = :conversation_id
            AND chunk.events LIKE '%' || CAST(tk_file_uses.file_id AS text) || '%')"""
)
# Read before the files are deleted, since their forms are deleted by cascade.
CONTENTS_OF_FILES = Statement("SELECT file_id, content_id FROM tk_file_forms WHERE file_id IN ({ids})")
# Spares files that still wait for a message: those expire.
FORGET_UNUSED = Statement(
    """DELETE FROM tk_files WHERE id IN ({ids}) AND unsent_since IS NULL
    AND NOT EXISTS (SELECT 1 FROM tk_file_uses WHERE tk_file_uses.file_id = tk_files.id) RETURNING id"""
)
# Checks the time again: a message may have used the file since EXPIRED found it.
_FORGET_EXPIRED = Statement(
    "DELETE FROM tk_files WHERE id IN ({ids}) AND unsent_since < :before RETURNING id"
)
# A message may be taking the file up: then it stays.
_FORGET_UNSENT = Statement(
    """DELETE FROM tk_files WHERE id IN ({ids}) AND user_id = :user_id AND unsent_since IS NOT NULL
    RETURNING id"""
)
# The oldest first, and only some, so that one transaction stays short.
EXPIRED = Statement("SELECT id FROM tk_files WHERE unsent_since < :before ORDER BY unsent_since LIMIT 100")
# Locked first, since another file may be taking one up; FREE_CONTENTS then deletes those that no file has.
_LOCK_CONTENTS = Statement("SELECT id FROM tk_contents WHERE id IN ({ids})", locks="ORDER BY id FOR UPDATE")
FREE_CONTENTS = Statement(
    """DELETE FROM tk_contents WHERE id IN ({ids})
    AND NOT EXISTS (SELECT 1 FROM tk_file_forms WHERE tk_file_forms.content_id = tk_contents.id)
    RETURNING id"""
)


@dataclass(frozen=True, slots=True)
class NewContent:
    """Bytes to keep, unless their user has the same already."""

    id: ContentId
    size: int


def contents_of(files: Iterable[UploadedFile]) -> dict[str, NewContent]:
    """The contents of files by their hashes, each with an id for the case that it is new."""
    return {
        payload.sha256: NewContent(ContentId(new_uuid()), payload.size)
        for file in files
        for payload in file.payloads(ConversationId(""))
    }


def lock_user(user_id: UserId) -> Query:
    """Those who add contents of one user wait for each other here."""
    return _LOCK_USER(user_id=user_id)


def known_contents(user_id: UserId, hashes: Iterable[str]) -> Plan[dict[str, ContentId]]:
    """Which contents a user already has; they stay until the unit of work ends."""
    rows = yield KNOWN_CONTENTS(user_id=user_id, hashes=to_json(list(hashes)))
    return dict(rows)


def add_contents(user_id: UserId, contents: Mapping[str, NewContent]) -> Plan[dict[str, ContentId]]:
    """The ids of contents by hash: of those that the user has, and of new ones."""
    known = yield from known_contents(user_id, contents)
    for sha256, content in contents.items():
        if sha256 not in known:
            yield _ADD_CONTENT(id=content.id, user_id=user_id, sha256=sha256, size=content.size)
            known[sha256] = content.id
    return known


def add_file(
    user_id: UserId, file: UploadedFile, contents: Mapping[str, ContentId], unsent_since: int | None
) -> Plan[None]:
    """A file whose contents are there."""
    yield _ADD_FILE(user_id=user_id, unsent_since=unsent_since, **_values(file))
    for payload in file.payloads(ConversationId("")):
        yield _ADD_FORM(
            id=payload.id,
            file_id=file.id,
            content_id=contents[payload.sha256],
            kind=payload.kind,
            media_type=payload.media_type,
        )


def mark_sent(conversation_id: ConversationId, files: Iterable[FilePart]) -> Plan[None]:
    """Lets a conversation use files, in the unit of work that stores the message.

    Raises FileNotFound if one has expired or was deleted meanwhile.
    """
    if ids := [part.file_id for part in files]:
        held = yield _HOLD(conversation_id=conversation_id, ids=to_json(ids))
        check_none_expired(ids, (id_ for (id_,) in held))
        yield USE(conversation_id=conversation_id, ids=to_json(ids))
        yield _MARK_SENT(ids=to_json(ids))


def forget_files_of(
    conversation_ids: Sequence[ConversationId], *, limit: int
) -> Plan[tuple[int, list[ContentId]]]:
    """Takes some files from conversations that are purged, and deletes those that no other conversation uses;
    returns how many were taken, and the freed contents.
    """
    rows = yield LOCK_USED_IN(ids=to_json(conversation_ids), limit=limit)
    if not rows:
        return 0, []
    files = [id_ for (id_,) in rows]
    yield _FORGET_USES(ids=to_json(conversation_ids), files=to_json(files))
    return len(files), (yield from forget_unused(files))


def forget_some_of_user(user_id: UserId, *, limit: int) -> Plan[tuple[int, list[ContentId]]]:
    """Deletes some files of a user; returns how many, and the freed contents."""
    ids = [id_ for (id_,) in (yield _SOME_OF_USER(user_id=user_id, limit=limit))]
    return len(ids), (yield from _forget(ids, _FORGET_FILES(ids=to_json(ids))))


def stop_using(conversation_id: ConversationId, files: Iterable[FilePart]) -> Plan[list[ContentId]]:
    """Deletes those files of a removed message that no other message has; returns the freed contents."""
    if not (ids := [part.file_id for part in files]):
        return []
    yield _HOLD(conversation_id=conversation_id, ids=to_json(ids))
    yield _STOP_USING(conversation_id=conversation_id, ids=to_json(ids))
    return (yield from forget_unused(ids))


def forget_unused(ids: Sequence[PayloadId]) -> Plan[list[ContentId]]:
    """Deletes those of the files that no conversation uses; returns the freed contents."""
    return (yield from _forget(ids, FORGET_UNUSED(ids=to_json(ids))))


def forget_unsent(user_id: UserId, file_id: PayloadId) -> Plan[tuple[bool, list[ContentId]]]:
    """Deletes a user's file that waits for a message; returns whether it did, and the freed contents."""
    ids = to_json([file_id])
    contents = yield CONTENTS_OF_FILES(ids=ids)
    is_gone = bool((yield _FORGET_UNSENT(ids=ids, user_id=user_id)))
    return is_gone, (yield from _free(content_id for _, content_id in contents)) if is_gone else []


def forget_some_expired(before: int) -> Plan[tuple[int, list[ContentId]]]:
    """Deletes some files that no message used in time; returns how many were due, and the freed contents."""
    ids = [id_ for (id_,) in (yield EXPIRED(before=before))]
    return len(ids), (yield from _forget(ids, _FORGET_EXPIRED(ids=to_json(ids), before=before)))


def _forget(ids: Sequence[PayloadId], forget: Query) -> Plan[list[ContentId]]:
    if not ids:
        return []
    contents = yield CONTENTS_OF_FILES(ids=to_json(ids))
    gone = {id_ for (id_,) in (yield forget)}
    return (yield from _free(content_id for file_id, content_id in contents if file_id in gone))


def _free(content_ids: Iterable[ContentId]) -> Plan[list[ContentId]]:
    """Deletes those contents that no file has any more."""
    freed = to_json(sorted(set(content_ids)))
    yield _LOCK_CONTENTS(ids=freed)  # a statement of its own: the next one sees who took one meanwhile
    return [id_ for (id_,) in (yield FREE_CONTENTS(ids=freed))]


def _values(file: UploadedFile) -> dict[str, Any]:
    values = {name: getattr(file, name) for name in UploadedFile.__slots__}
    return values | {"renditions": to_json(file.renditions)}
