"""The files of documents in the workspaces of agents."""

import asyncio
import hashlib
import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, DocumentId, is_uuid
from threadkeep.domain.workspace import Workspaces

FOLDER = "documents"
COPIED_AT_ONCE = 1024 * 1024


class FolderDocumentFiles:
    """The files below the data folder, each named by its document's id."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def keep(
        self, agent_id: AgentId, document_id: DocumentId, file: BinaryIO, *, most: int | None = None
    ) -> tuple[int, str]:
        """Keeps a copy of a file, durably; its size and hash. Stops beyond `most` bytes."""
        path = self._path(agent_id, document_id)
        try:
            return await asyncio.to_thread(_copy, file, path, most)
        except OSError as exc:
            raise StorageUnavailable(f"The file cannot be kept: {exc.strerror}.") from exc

    async def find(self, agent_id: AgentId, document_id: DocumentId) -> Path | None:
        """Where a file lies, for whoever reads it; None where it is no longer there."""
        path = self._path(agent_id, document_id)
        return path if await asyncio.to_thread(path.is_file) else None

    async def remove(self, agent_id: AgentId, document_id: DocumentId) -> None:
        """Removes a file, if it is there."""
        try:
            await asyncio.to_thread(self._path(agent_id, document_id).unlink, missing_ok=True)
        except OSError as exc:
            raise StorageUnavailable(f"The file cannot be removed: {exc.strerror}.") from exc

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have files."""
        return await asyncio.to_thread(_agent_ids, self._workspaces.root)

    async def keep_only(self, agent_id: AgentId, known: Collection[DocumentId], *, idle_s: float) -> None:
        """Removes an agent's other files, save those written within `idle_s` seconds."""
        folder = self._workspaces.of(agent_id) / FOLDER
        try:
            await asyncio.to_thread(_keep_only, folder, known, time.time() - idle_s)
        except OSError as exc:
            raise StorageUnavailable(f"The folder {folder} cannot be cleared: {exc.strerror}.") from exc

    def _path(self, agent_id: AgentId, document_id: DocumentId) -> Path:
        return self._workspaces.of(agent_id) / FOLDER / document_id


def _copy(file: BinaryIO, path: Path, most: int | None) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("wb") as kept:
            while (part := file.read(COPIED_AT_ONCE)) and (most is None or size <= most):
                digest.update(part)
                size += len(part)
                kept.write(part)
            kept.flush()
            os.fsync(kept.fileno())
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    return size, digest.hexdigest()


def _agent_ids(root: Path) -> list[AgentId]:
    found = (folder.parent.name for folder in root.glob(f"*/{FOLDER}"))
    return [AgentId(name) for name in found if is_uuid(name)]


def _keep_only(folder: Path, known: Collection[str], oldest: float) -> None:
    with suppress(FileNotFoundError):  # another node was faster
        for file in folder.iterdir():
            if file.name not in known and file.stat().st_mtime < oldest:
                file.unlink()
