"""The files of a data folder for a backup.

Programs write into the agents' folders while we read there: nothing follows a link that they put in place of
a folder or a file, and nothing waits for a pipe.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from threadkeep.domain.data_folder import DATABASE, KINDS, Kind, kind_of
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.database.archive import LeftOut, UnreadableFile

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Where a path is longer, restoring it could fail.
MOST_FOLDERS = 100
MOST_PATH_BYTES = 1000

_ROOTS = {kind.root for kind in KINDS if kind.has_folder}


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file for a backup. Open it before the next one is found: its folder is closed then."""

    path: PurePosixPath
    kind: Kind
    folder: int
    follow: bool


def open_file(found: BackupFile) -> int:
    """A descriptor of the file; raises UnreadableFile or FileNotFoundError."""
    flags = _FILE_FLAGS if found.follow else _FILE_FLAGS | os.O_NOFOLLOW
    try:
        return os.open(found.path.name, flags, dir_fd=found.folder)
    except FileNotFoundError as exc:
        if _is_dangling(found.folder, found.path.name):
            raise UnreadableFile("it is a link that leads nowhere") from exc
        raise
    except OSError as exc:
        raise UnreadableFile(exc.strerror) from exc


def walk(folder: Path) -> Iterator[BackupFile | LeftOut]:
    """The files that a backup contains, except the database, and what it leaves out."""
    top = os.open(folder, _FOLDER_FLAGS)
    try:
        with os.scandir(top) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            path = PurePosixPath(name)
            if name in _ROOTS:
                yield from _walk_root(top, path)
                continue
            kind = kind_of(path)
            if kind is None:
                yield LeftOut(name, "Threadkeep creates no such file")
            elif kind.backed_up and name != DATABASE:
                # An operator may keep it elsewhere and link to it.
                yield BackupFile(path, kind, top, follow=True)
    finally:
        os.close(top)


def _walk_root(top: int, path: PurePosixPath) -> Iterator[BackupFile | LeftOut]:
    """A folder of ours, or one elsewhere that an operator has linked here."""
    if not _is_wanted(path):
        return
    try:
        folder = os.open(path.name, _FOLDER_FLAGS, dir_fd=top)
    except OSError as exc:
        if isinstance(exc, FileNotFoundError) and not _is_dangling(top, path.name):
            return  # removed meanwhile
        raise _cannot_list(path, exc) from exc
    yield from _walk(folder, path)


def _is_dangling(folder: int, name: str) -> bool:
    """Whether something is there though it can't be found: a link to a disk that isn't mounted, perhaps."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _walk(folder: int, above: PurePosixPath) -> Iterator[BackupFile | LeftOut]:
    """Everything below an open folder, which is closed at the end."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = above / entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_inner(folder, path)
            else:
                yield from _look_at(folder, path, entry)
    finally:
        os.close(folder)


def _walk_inner(above: int, path: PurePosixPath) -> Iterator[BackupFile | LeftOut]:
    if not _is_wanted(path):
        return
    if len(path.parts) > MOST_FOLDERS or _is_too_long(path):
        yield LeftOut(str(path), "its path is too long")
        return
    try:
        folder = os.open(path.name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=above)
    except FileNotFoundError:
        return  # removed meanwhile
    except OSError as exc:
        kind = kind_of(path / "file")
        if kind is None or not kind.others_write:
            raise _cannot_list(path, exc) from exc
        yield LeftOut(str(path), exc.strerror or str(exc))
        return
    yield from _walk(folder, path)


def _look_at(folder: int, path: PurePosixPath, entry: "os.DirEntry[str]") -> Iterator[BackupFile | LeftOut]:
    kind = kind_of(path)
    assert kind is not None, path  # every kind in a folder is followed by one for the rest of it
    if not kind.backed_up:
        return
    if entry.is_symlink():
        yield LeftOut(str(path), "it is a symbolic link")
    elif not entry.is_file(follow_symlinks=False):
        yield LeftOut(str(path), "it isn't a regular file")
    elif _is_too_long(path):
        yield LeftOut(str(path), "its path is too long")
    else:
        yield BackupFile(path, kind, folder, follow=False)


def _is_wanted(folder: PurePosixPath) -> bool:
    """Whether a backup contains files of a folder."""
    kind = kind_of(folder / "file")
    return kind is not None and kind.backed_up


def _is_too_long(path: PurePosixPath) -> bool:
    return len(os.fsencode(path)) > MOST_PATH_BYTES


def _cannot_list(path: PurePosixPath, exc: OSError) -> StorageRefused:
    return StorageRefused(
        f"Couldn't back up the folder {str(path)!r}: {exc.strerror}. No backup was written."
    )
