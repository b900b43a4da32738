"""The files of documents in the workspaces of agents.

Other programs write there too: links that they put in place of a folder or a file are not followed.
"""

import asyncio
import errno
import hashlib
import os
import stat
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, DocumentId, is_uuid
from threadkeep.domain.workspace import Workspaces
from threadkeep.storage.opening import open_in_thread

FOLDER = "documents"
COPIED_AT_ONCE = 1024 * 1024

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_OURS = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR}


class FolderDocumentFiles:
    """The files of documents, as uploaded. Raises StorageUnavailable if a file can't be written."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def keep(
        self, agent_id: AgentId, document_id: DocumentId, file: BinaryIO, *, most: int | None = None
    ) -> tuple[int, str]:
        """Stores a copy of a file, durably; returns its size and hash. Stops beyond `most` bytes."""
        folder = self._workspaces.of(agent_id)
        try:
            return await asyncio.to_thread(_copy, file, folder, document_id, most)
        except OSError as exc:
            raise StorageUnavailable(f"Couldn't store the file: {exc.strerror}.") from exc

    async def open(self, agent_id: AgentId, document_id: DocumentId) -> BinaryIO | None:
        """An open file, which the caller closes; None if it no longer exists."""
        try:
            return await open_in_thread(lambda: _open(self._workspaces.of(agent_id), document_id))
        except OSError as exc:
            raise StorageUnavailable(f"Couldn't read the file: {exc.strerror}.") from exc

    async def remove(self, agent_id: AgentId, document_id: DocumentId) -> None:
        """Removes a file, if it exists."""
        try:
            await asyncio.to_thread(_remove, self._workspaces.of(agent_id), document_id)
        except OSError as exc:
            raise StorageUnavailable(f"Couldn't delete the file: {exc.strerror}.") from exc

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have files."""
        return await asyncio.to_thread(_agent_ids, self._workspaces.root)

    async def keep_only(self, agent_id: AgentId, known: Collection[DocumentId], *, idle_s: float) -> None:
        """Removes an agent's other files, except those written within `idle_s` seconds."""
        folder = self._workspaces.of(agent_id)
        try:
            await asyncio.to_thread(_keep_only, folder, known, time.time() - idle_s)
        except OSError as exc:
            raise StorageUnavailable(f"Couldn't clear the folder {folder}: {exc.strerror}.") from exc


@contextmanager
def _documents(workspace: Path) -> Generator[int]:
    """Opens the folder of an agent's documents."""
    above = os.open(workspace, _FOLDER_FLAGS)
    try:
        folder = os.open(FOLDER, _FOLDER_FLAGS, dir_fd=above)
    finally:
        os.close(above)
    try:
        yield folder
    finally:
        os.close(folder)


def _copy(file: BinaryIO, workspace: Path, name: str, most: int | None) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    (workspace / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
    with _documents(workspace) as folder:
        try:
            with os.fdopen(os.open(name, _WRITE_FLAGS, 0o600, dir_fd=folder), "wb") as kept:
                while (part := file.read(COPIED_AT_ONCE)) and (most is None or size <= most):
                    digest.update(part)
                    size += len(part)
                    kept.write(part)
                kept.flush()
                os.fsync(kept.fileno())
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
    return size, digest.hexdigest()


def _open(workspace: Path, name: str) -> BinaryIO | None:
    try:
        with _documents(workspace) as folder:
            file = os.fdopen(os.open(name, _READ_FLAGS, dir_fd=folder), "rb")
    except OSError as exc:
        if exc.errno in _NOT_OURS:
            return None
        raise
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    return None


def _remove(workspace: Path, name: str) -> None:
    try:
        with _documents(workspace) as folder:
            os.unlink(name, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in _NOT_OURS:
            raise


def _agent_ids(root: Path) -> list[AgentId]:
    found = (folder.parent.name for folder in root.glob(f"*/{FOLDER}"))
    return [AgentId(name) for name in found if is_uuid(name)]


def _keep_only(workspace: Path, known: Collection[str], oldest: float) -> None:
    try:
        with _documents(workspace) as folder:
            for name in {entry.name for entry in os.scandir(folder)}.difference(known):
                with suppress(FileNotFoundError, IsADirectoryError):  # another node was faster; not ours
                    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                        os.unlink(name, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in _NOT_OURS:
            raise
