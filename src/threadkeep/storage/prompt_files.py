"""Prompt files in the workspaces of agents, read again whenever they change."""

import asyncio
import errno
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import AgentId, is_uuid, new_uuid
from threadkeep.domain.workspace import PromptComponent, Workspaces


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A component as read from its file; one that all agents share has a name like `shared/RULES.md`.

    Only head and tail of a huge file are read: `unread` counts the bytes between them. `problem` explains to
    people why the text is missing, or that some of it couldn't be decoded.
    """

    name: str
    text: str = ""
    unread: int = 0
    problem: str | None = None


# More than a component may have, in any script; the middle of a larger file is dropped anyway.
MOST_BYTES_AN_END = 128 * 1024
MOST_BYTES_A_COPY = 4 * 1024 * 1024
MOST_CACHED = 1024
# A file that was just written may be written again with the same timestamps.
SETTLED_NS = 100_000_000

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: opening a FIFO would otherwise wait for a writer.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_Version = tuple[int, int, int, int, int]


class FolderPromptFiles:
    """Files below the data folder. Never follows symbolic links, and opens regular files only."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._cache: dict[str, tuple[_Version, PromptFile]] = {}
        self._lock = threading.Lock()

    async def read(self, agent_id: AgentId) -> Sequence[PromptFile]:
        """An agent's files, in the order of the components, the shared one first."""
        return await asyncio.to_thread(self._read, agent_id)

    async def read_whole(self, agent_id: AgentId) -> Mapping[PromptComponent, str]:
        """An agent's own readable files, whole, for copies; a gigantic one says what is left out."""
        return await asyncio.to_thread(_read_whole, self._workspaces.of(agent_id))

    async def write(self, agent_id: AgentId, component: PromptComponent, text: str) -> None:
        """Replaces an agent's component atomically; an empty text removes it."""
        try:
            await asyncio.to_thread(_write, self._workspaces.of(agent_id), component, text)
        except OSError as exc:
            raise StorageUnavailable(f"Can't write {component}: {exc.strerror}.") from exc

    async def size(self, agent_id: AgentId) -> int:
        """The bytes of an agent's own files."""
        return await asyncio.to_thread(_size, self._workspaces.of(agent_id))

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have a folder."""
        return await asyncio.to_thread(_agent_ids, self._workspaces.root)

    async def remove(self, agent_id: AgentId, *, idle_s: float = 0) -> bool:
        """Removes an agent's folder with everything in it; returns whether it did.

        Not if a component in it was written within `idle_s` seconds.
        """
        try:
            return await asyncio.to_thread(_remove, self._workspaces.of(agent_id), idle_s)
        except OSError as exc:
            raise StorageUnavailable(f"Couldn't delete the folder of {agent_id}: {exc.strerror}.") from exc

    def _read(self, agent_id: AgentId) -> Sequence[PromptFile]:
        shared = self._read_folder(self._workspaces.shared, "shared/")
        own = self._read_folder(self._workspaces.of(agent_id), "")
        return [file for pair in zip(shared, own, strict=True) for file in pair if file is not None]

    def _read_folder(self, folder: Path, prefix: str) -> Sequence[PromptFile | None]:
        try:
            descriptor = os.open(folder, _FOLDER_FLAGS)
        except FileNotFoundError:
            return [None for _ in PromptComponent]
        except OSError as exc:
            return [_unreadable(f"{prefix}{component}", exc) for component in PromptComponent]
        try:
            return [self._read_file(descriptor, it, f"{prefix}{it}") for it in PromptComponent]
        finally:
            os.close(descriptor)

    def _read_file(self, folder: int, file_name: str, name: str) -> PromptFile | None:
        try:
            version = _version(os.stat(file_name, dir_fd=folder, follow_symlinks=False))
            key = f"{version[0]} {version[1]} {name}"
            with self._lock:
                known = self._cache.get(key)
            if known is not None and known[0] == version:
                return known[1]
            version, file = _read_file(folder, file_name, name)
        except FileNotFoundError:
            return None
        except OSError as exc:
            return _unreadable(name, exc)
        if time.time_ns() - version[-1] > SETTLED_NS:
            with self._lock:
                while len(self._cache) >= MOST_CACHED:
                    del self._cache[next(iter(self._cache))]
                self._cache[key] = version, file
        return file


def _size(folder: Path) -> int:
    total = 0
    for component in PromptComponent:
        with suppress(OSError):
            total += (folder / component).lstat().st_size
    return total


def _unreadable(name: str, error: OSError) -> PromptFile:
    why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
    return PromptFile(name, problem=f"{name} was left out because it can't be read: {why}.")


def _version(status: os.stat_result) -> _Version:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_whole(folder: Path) -> Mapping[PromptComponent, str]:
    try:
        descriptor = os.open(folder, _FOLDER_FLAGS)
    except OSError:
        return {}
    texts: dict[PromptComponent, str] = {}
    try:
        for component in PromptComponent:
            with suppress(OSError):  # the agent does without it, too, and its prompt says so
                _, file = _read_file(
                    descriptor,
                    component,
                    component,
                    most_bytes_an_end=MOST_BYTES_A_COPY // 2,
                    between=lambda unread: f"\n[{unread:,} bytes left out of this copy]\n",
                )
                texts[component] = file.text
    finally:
        os.close(descriptor)
    return {component: text for component, text in texts.items() if text}


def _read_file(
    folder: int,
    file_name: str,
    name: str,
    *,
    most_bytes_an_end: int = MOST_BYTES_AN_END,
    between: Callable[[int], str] = lambda unread: "",
) -> tuple[_Version, PromptFile]:
    descriptor = os.open(file_name, _FILE_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _version(status), PromptFile(
                name, problem=f"{name} was left out because it isn't a regular file."
            )
        size = status.st_size
        if size <= 2 * most_bytes_an_end:
            return _version(status), _decoded(name, os.pread(descriptor, size, 0))
        head = os.pread(descriptor, most_bytes_an_end, 0).decode(errors="replace")
        tail = os.pread(descriptor, most_bytes_an_end, size - most_bytes_an_end).decode(errors="replace")
        unread = size - 2 * most_bytes_an_end
        return _version(status), PromptFile(name, f"{head}{between(unread)}{tail}", unread=unread)
    finally:
        os.close(descriptor)


def _decoded(name: str, raw: bytes) -> PromptFile:
    try:
        return PromptFile(name, raw.decode())
    except UnicodeDecodeError:
        problem = f"{name} isn't valid UTF-8; invalid bytes appear as �."
        return PromptFile(name, raw.decode(errors="replace"), problem=problem)


def _write(folder: Path, file_name: str, text: str) -> None:
    """Writes a new file and renames it over the old one: readers see one or the other."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, _FOLDER_FLAGS)
    fresh = f".{file_name}.{new_uuid()}"
    try:
        if not text:
            with suppress(FileNotFoundError):
                os.unlink(file_name, dir_fd=descriptor)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, 0o600, dir_fd=descriptor), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, file_name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        os.fsync(descriptor)
    finally:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=descriptor)
        os.close(descriptor)


def _agent_ids(root: Path) -> Sequence[AgentId]:
    try:
        return [AgentId(folder.name) for folder in sorted(root.iterdir()) if is_uuid(folder.name)]
    except FileNotFoundError:
        return []


def _remove(folder: Path, idle_s: float) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    if idle_s and status.st_mtime > time.time() - idle_s:
        return False
    # If the folder is a link, removes the link, not its target.
    if stat.S_ISLNK(status.st_mode):
        folder.unlink()
    else:
        shutil.rmtree(folder)
    return True
