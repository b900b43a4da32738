"""Contents of payloads as files, one folder per conversation."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import ConversationId, is_uuid, new_uuid
from threadkeep.domain.payload import Payload
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan
from threadkeep.storage.file_contents import PIECE_BYTES, ends_early
from threadkeep.storage.opening import open_in_thread
from threadkeep.storage.payloads.database import NAMED

log = logging.getLogger("threadkeep.storage")

HOUR_S = 60 * 60
_FOLDERS_AT_ONCE = 200


class FolderContents:
    """Contents below a folder, which all nodes share if there are several."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, conversation_id: ConversationId, sha256: str, content: bytes) -> None:
        """Stores a content; it is on the disk when this returns."""
        try:
            await asyncio.to_thread(_write, self._folder / conversation_id, sha256, content)
        except OSError as exc:
            raise StorageRefused(f"Can't write to the payload folder: {exc.strerror}.") from exc

    def write_within(self, conversation_id: ConversationId, sha256: str, content: bytes) -> Plan[None]:
        """Stores a content before the unit of work continues; if that fails, `collect` removes it."""
        try:
            _write(self._folder / conversation_id, sha256, content)
        except OSError as exc:
            raise StorageRefused(f"Can't write to the payload folder: {exc.strerror}.") from exc
        yield from ()

    async def copy(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> None:
        """Copies files to a conversation that is about to be created; `collect` removes leftovers."""
        try:
            for name in names:
                await asyncio.to_thread(_copy, self._folder / source, self._folder / target, name)
        except OSError as exc:
            raise StorageRefused(f"Can't write to the payload folder: {exc.strerror}.") from exc

    def copy_within(self, source: ConversationId, target: ConversationId, names: Iterable[str]) -> Plan[None]:
        """Nothing: files are outside the database."""
        yield from ()

    async def read(self, payload: Payload) -> bytes | None:
        """A content as found on disk; None if it cannot be read."""
        return await asyncio.to_thread(_read, self._path(payload), payload)

    async def size(self, payload: Payload) -> int | None:
        """How many bytes a content has on disk."""
        try:
            return (await asyncio.to_thread(self._path(payload).stat)).st_size
        except OSError:
            return None

    def read_part(self, payload: Payload, start: int, stop: int) -> AsyncGenerator[bytes]:
        """Some of its bytes, a piece at a time."""
        return read_file(self._path(payload), start, stop)

    def _path(self, payload: Payload) -> Path:
        return self._folder / payload.conversation_id / payload.sha256

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Removes the folders of conversations; `collect` retries those that fail."""
        for conversation_id in conversation_ids:
            await asyncio.to_thread(shutil.rmtree, self._folder / conversation_id, ignore_errors=True)

    async def collect(self, database: Database) -> int:
        """Removes files older than an hour that no payload names."""
        removed = 0
        names = await asyncio.to_thread(_folders_in, self._folder)
        for first in range(0, len(names), _FOLDERS_AT_ONCE):
            batch = names[first : first + _FOLDERS_AT_ONCE]
            # Listed before querying the database: anything written meanwhile is younger than an hour.
            old = await asyncio.to_thread(_old_files, [self._folder / name for name in batch])
            rows = await database.fetch(NAMED(ids=to_json(batch)))
            named = {self._folder / conversation_id / sha256 for conversation_id, sha256 in rows}
            removed += await asyncio.to_thread(_remove, [file for file in old if file not in named])
        return removed


def _write(folder: Path, name: str, content: bytes) -> None:
    write_from(BytesIO(content), folder, name)


def write_from(source: BinaryIO, folder: Path, name: str) -> None:
    """Writes a file, whole or not at all; it is on the disk when this returns."""
    _make(folder)
    fresh = folder / f"{new_uuid()}.part"
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            shutil.copyfileobj(source, file, PIECE_BYTES)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / name)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    _sync(folder)


async def read_file(path: Path, start: int, stop: int) -> AsyncGenerator[bytes]:
    """Some bytes of a file, a piece at a time; StorageError if they end early.

    Those of a file that is deleted meanwhile stay until they are read.
    """
    try:
        file = await open_in_thread(lambda: path.open("rb"))
    except OSError as exc:
        raise ends_early() from exc
    with file:
        file.seek(start)
        while start < stop:
            piece = await asyncio.to_thread(file.read, min(PIECE_BYTES, stop - start))
            if not piece:
                raise ends_early()
            start += len(piece)
            yield piece


def link_or_copy(source: Path, folder: Path, name: str) -> None:
    """A hard link; a copy if the file system has no links, or the source is on another."""
    _make(folder)
    _sync(source)
    with suppress(FileExistsError):  # the existing content has the same hash
        try:
            os.link(source, folder / name)
        except FileExistsError:
            raise
        except OSError:
            with source.open("rb") as file:
                write_from(file, folder, name)
    os.utime(folder / name)  # young again, so that `collect` leaves it
    _sync(folder)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sync(folder.parent)


def _copy(source: Path, target: Path, name: str) -> None:
    with suppress(FileNotFoundError):  # the copy lacks what the original lacks
        _write(target, name, (source / name).read_bytes())


def _sync(path: Path) -> None:
    """Syncs a file, or a folder's entries, which syncing a file in it does not."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(file: Path, payload: Payload) -> bytes | None:
    try:
        with file.open("rb") as opened:
            return opened.read(payload.size + 1)
    except OSError as exc:
        log.error("couldn't read payload %s: %s", payload.id, exc.strerror)
        return None


def _folders_in(folder: Path) -> list[str]:
    """The folders of conversations; other entries are not ours."""
    with suppress(FileNotFoundError):
        return sorted(entry.name for entry in os.scandir(folder) if is_uuid(entry.name))
    return []


def _old_files(folders: Iterable[Path]) -> list[Path]:
    oldest = time.time() - HOUR_S
    old: list[Path] = []
    for folder in folders:
        with suppress(FileNotFoundError):
            old += [Path(it.path) for it in os.scandir(folder) if it.stat().st_mtime < oldest]
    return old


def _remove(files: Iterable[Path]) -> int:
    removed, oldest = 0, time.time() - HOUR_S
    for file in files:
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:  # unless it was written again meanwhile
                file.unlink()
                removed += 1
        with suppress(OSError):
            file.parent.rmdir()  # only if it is empty
    return removed
