"""The bytes of files as files of their own, by content id."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import ContentId, is_uuid
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.file_contents import OpenSource
from threadkeep.storage.payloads.folder import HOUR_S, link_or_copy, read_file, write_from

FILES_FOLDER = "files"
"""Where they are in the payload folder, in subfolders named after the ends of their ids; no conversation has
this name.
"""

# Which of the files in the folder still have a row; the others are leftovers.
KNOWN = Statement("SELECT id FROM tk_contents WHERE id IN ({ids})")


class FolderFileContents:
    """Contents below a folder, which all nodes share if there are several."""

    def __init__(self, payload_folder: Path, database: Database) -> None:
        self._folder = payload_folder / FILES_FOLDER
        self._database = database

    async def stage(self, contents: Mapping[ContentId, Path]) -> None:
        """Stores contents: as hard links, where the file system has them. They are on the disk afterwards."""
        try:
            for content_id, source in contents.items():
                path = self._path(content_id)
                await asyncio.to_thread(link_or_copy, source, path.parent, path.name)
        except OSError as exc:
            await self.remove(contents)
            raise _cannot_be_written(exc) from exc

    async def stage_bytes(self, content_id: ContentId, content: bytes) -> None:
        """Stores a content; it is on the disk afterwards."""
        path = self._path(content_id)
        try:
            await asyncio.to_thread(write_from, BytesIO(content), path.parent, path.name)
        except OSError as exc:
            raise _cannot_be_written(exc) from exc

    def write_within(self, content_id: ContentId, source: OpenSource) -> Plan[None]:
        """Stores a content before the unit of work continues; if that fails, `collect` removes it."""
        path = self._path(content_id)
        if not path.exists():
            try:
                with source() as file:
                    write_from(file, path.parent, path.name)
            except OSError as exc:
                raise _cannot_be_written(exc) from exc
        yield from ()

    async def settle(self, spares: Mapping[ContentId, ContentId]) -> None:
        """Removes staged contents, or puts them where the known ones are missing or damaged."""
        for spare, known in spares.items():
            await asyncio.to_thread(_settle, self._path(spare), self._path(known))

    async def size(self, content_id: ContentId) -> int | None:
        """How many bytes of a content there are."""
        try:
            return (await asyncio.to_thread(self._path(content_id).stat)).st_size
        except OSError:
            return None

    def read(self, content_id: ContentId, start: int, stop: int) -> AsyncGenerator[bytes]:
        """The bytes of a content, a piece at a time."""
        return read_file(self._path(content_id), start, stop)

    async def remove(self, ids: Iterable[ContentId]) -> None:
        """Removes contents; `collect` retries those that fail."""
        for content_id in ids:
            with suppress(OSError):
                await asyncio.to_thread(self._path(content_id).unlink, missing_ok=True)

    async def collect(self) -> int:
        """Removes files older than an hour that no row names, one subfolder after the other."""
        removed = 0
        for folder in await asyncio.to_thread(_folders_in, self._folder):
            # Listed before querying the database: anything written meanwhile is younger than an hour.
            if old := await asyncio.to_thread(_old_names_in, folder):
                rows = await self._database.fetch(KNOWN(ids=to_json([it for it in old if is_uuid(it)])))
                left = {*old} - {str(id_) for (id_,) in rows}
                await asyncio.to_thread(_remove, [folder / name for name in left])
                removed += len(left)
        return removed

    def _path(self, content_id: ContentId) -> Path:
        # Ids begin with the time: their ends spread them evenly.
        return self._folder / content_id[-2:] / content_id


def _cannot_be_written(exc: OSError) -> StorageRefused:
    return StorageRefused(f"Can't write to the payload folder: {exc.strerror}.")


def _settle(spare: Path, known: Path) -> None:
    with suppress(OSError):
        if not known.exists() or known.stat().st_size != spare.stat().st_size:
            known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            spare.replace(known)
        else:
            spare.unlink()


def _folders_in(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(it for it in folder.iterdir() if len(it.name) == 2 and it.is_dir())
    return []


def _old_names_in(folder: Path) -> list[str]:
    """What has been there for an hour, including parts of files that a crash has left."""
    oldest = time.time() - HOUR_S
    old: list[str] = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime < oldest:
                    old.append(entry.name)
    return old


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink()
