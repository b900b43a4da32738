"""Moves the contents of files from where earlier versions kept them: migration 0012's step in Python.

The table `tk_files_before` holds the files still to move. Those that no message used were in
`payloads/staged` or `tk_file_pieces_before`; the others were payloads of the one conversation that used them.
A file is moved in one transaction; a process that is killed leaves the rest to the next start.
"""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from threadkeep.domain.ids import ContentId, ConversationId, UserId
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.storage.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Statement, with_ids
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import (
    FILE_COLUMNS,
    USE,
    NewContent,
    add_contents,
    add_file,
    contents_of,
    lock_user,
)
from threadkeep.storage.files import to_file

BATCH = 100
_LOCK_KEY = 0x6669_6C65_73  # "files": nodes that start together take turns

IS_WAITING = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name = 'tk_files_before'",
    postgres="SELECT count(*) FROM pg_class WHERE oid = to_regclass('tk_files_before')",
)
_ALONE = Statement("SELECT 1", postgres=f"SELECT pg_advisory_xact_lock({_LOCK_KEY})")
_SOME = Statement(
    f"SELECT user_id, conversation_id, {FILE_COLUMNS} FROM tk_files_before ORDER BY id LIMIT :limit"
)
_ANY = Statement("SELECT 1 FROM tk_files_before LIMIT 1")
_TAKE = Statement("DELETE FROM tk_files_before WHERE id = :id RETURNING id")
_CONVERSATION = "SELECT 1 FROM tk_conversations WHERE id = :id"
_HOLD_CONVERSATION = Statement(_CONVERSATION, postgres=f"{_CONVERSATION} FOR KEY SHARE")
_FORGET_PIECES = Statement("DELETE FROM tk_file_pieces_before WHERE file_id = :id")
_FORGET_PAYLOADS = with_ids("DELETE FROM tk_payloads WHERE id IN (IDS)")
_PIECES = Statement(
    "SELECT content FROM tk_file_pieces_before WHERE file_id = :file_id AND name = :name ORDER BY number"
)
_CONTENT = Statement(
    """SELECT content FROM tk_payload_contents
    WHERE conversation_id = :conversation_id AND sha256 = :sha256"""
)
_DROP = (Statement("DROP TABLE tk_file_pieces_before"), Statement("DROP TABLE tk_files_before"))

_STAGED = "staged"


@dataclass(frozen=True, slots=True)
class _OldFile:
    """A file of an earlier version, and the conversation that used it."""

    user_id: UserId
    conversation_id: ConversationId | None
    file: UploadedFile

    def paths(self, payload_folder: Path) -> dict[str, Path]:
        """Where its contents are in a folder, by hash."""
        if self.conversation_id is None:
            staged = payload_folder / _STAGED / self.file.id
            return {sha256: staged / name for name, sha256 in self.file.hashes.items()}
        return {it: payload_folder / self.conversation_id / it for it in self.file.hashes.values()}


async def convert_files(database: Database, contents: FileContents, payload_folder: Path | None) -> None:
    """Moves all files that an earlier version stored."""
    while some := await database.read(_some):
        for old in some:
            await _convert(database, contents, old, payload_folder)
    await database.write(drop_converted)
    if payload_folder is not None:
        await asyncio.to_thread(shutil.rmtree, payload_folder / _STAGED, ignore_errors=True)


def drop_converted() -> Plan[None]:
    """Drops the old tables once they are empty."""
    yield _ALONE()
    ((is_waiting,),) = yield IS_WAITING()
    if is_waiting and not (yield _ANY()):
        for drop in _DROP:
            yield drop()


def _some() -> Plan[list[_OldFile]]:
    yield _ALONE()
    ((is_waiting,),) = yield IS_WAITING()
    return [_old_file(row) for row in (yield _SOME(limit=BATCH))] if is_waiting else []


async def _convert(
    database: Database, contents: FileContents, old: _OldFile, payload_folder: Path | None
) -> None:
    new = contents_of([old.file])
    if payload_folder is not None:
        paths = await asyncio.to_thread(_existing, old.paths(payload_folder))
        await contents.stage({new[sha256].id: path for sha256, path in paths.items()})
    kept = await database.write(lambda: _move(contents, old, new, in_database=payload_folder is None))
    if kept is None:  # another node was first, or nobody has it any more
        await contents.remove(it.id for it in new.values())
    else:
        await contents.settle({it.id: kept[sha256] for sha256, it in new.items() if kept[sha256] != it.id})


def _move(
    contents: FileContents, old: _OldFile, new: Mapping[str, NewContent], *, in_database: bool
) -> Plan[Mapping[str, ContentId] | None]:
    yield _ALONE()
    ((is_waiting,),) = yield IS_WAITING()
    if not is_waiting or not (yield _TAKE(id=old.file.id)):
        return None
    if not (yield from _is_wanted(old)):
        yield _FORGET_PIECES(id=old.file.id)
        return None
    kept = yield from add_contents(old.user_id, new)
    is_unsent = old.conversation_id is None
    yield from add_file(old.user_id, old.file, kept, old.file.created_at if is_unsent else None)
    if old.conversation_id is not None:
        yield USE(conversation_id=old.conversation_id, ids=to_json([old.file.id]))
    if in_database:
        for sha256, name in {sha256: name for name, sha256 in old.file.hashes.items()}.items():
            if kept[sha256] == new[sha256].id and (found := (yield from _content(old, name, sha256))):
                yield from contents.write_within(kept[sha256], lambda found=found: BytesIO(found))
    yield _FORGET_PIECES(id=old.file.id)
    yield _FORGET_PAYLOADS(ids=to_json([it.id for it in old.file.payloads(ConversationId(""))]))
    return kept


def _is_wanted(old: _OldFile) -> Plan[bool]:
    """Whether its user and conversation are still there, which then stay until the unit of work ends.

    A node of an earlier version, or the application around us, may have deleted them since the migration.
    """
    if not (yield lock_user(old.user_id)):
        return False
    return old.conversation_id is None or bool((yield _HOLD_CONVERSATION(id=old.conversation_id)))


def _content(old: _OldFile, name: str, sha256: str) -> Plan[bytes]:
    """A content in the database; nothing if it is lost."""
    if old.conversation_id is None:
        rows = yield _PIECES(file_id=old.file.id, name=name)
    else:
        rows = yield _CONTENT(conversation_id=old.conversation_id, sha256=sha256)
    return b"".join(bytes(content) for (content,) in rows)


def _existing(paths: Mapping[str, Path]) -> dict[str, Path]:
    return {sha256: path for sha256, path in paths.items() if path.is_file()}


def _old_file(row: Row) -> _OldFile:
    user_id, conversation_id, *file = row
    return _OldFile(user_id, conversation_id, to_file(file))
