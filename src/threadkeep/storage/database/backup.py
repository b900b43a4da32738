"""Backs up a data folder to one file while Threadkeep runs, and restores it."""

import math
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from threadkeep.domain.data_folder import BACKING_UP, BEFORE, DATABASE, GITIGNORE, LOCK, RESTORING
from threadkeep.domain.errors import StorageRefused
from threadkeep.storage.database.archive import ArchiveWriter, LeftOut, UnreadableFile, read_archive
from threadkeep.storage.database.folder import FolderLock, check_restored, clear
from threadkeep.storage.database.folder_contents import BackupFile, open_file, walk

COPIES = 3
"""A migration needs disk space for this many databases: a copy, the log and the new tables."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written and verified."""

    size: int
    left_out: Sequence[LeftOut]


def back_up(folder: Path, file: Path) -> Backup:
    """Writes a whole data folder into one file, and reads it again as `restore` will.

    Later writes are not included. A file that a row refers to was written before the row and is removed
    after it. So files are copied before the database and, if they are new, after it: then the backup has
    whatever the rows refer to, even if files are removed meanwhile.
    """
    if not (folder / DATABASE).is_file():
        raise StorageRefused(f"No database found in {folder}. Set the data folder with --data.")
    check_restored(folder)
    if file.exists():
        raise StorageRefused(f"{file} already exists. Choose another file name.")
    try:
        with TemporaryDirectory(dir=file.parent, prefix=BACKING_UP) as beside:
            partial_file = Path(beside) / file.name
            left_out = _write_archive(folder, Path(beside) / DATABASE, partial_file)
            read_archive(partial_file)
            partial_file.replace(file)
        _sync(file.parent)
    except (OSError, tarfile.TarError, sqlite3.Error) as exc:
        raise StorageRefused(f"Couldn't write the backup; no file was left behind: {exc}.") from exc
    return Backup(file.stat().st_size, left_out)


def restore(file: Path, folder: Path) -> Sequence[LeftOut]:
    """Creates a data folder from a backup; refuses a folder that is not empty.

    No server starts on the folder before everything is in it and on the disk. If this fails, the folder is
    empty again; after a crash, the next try starts over.
    """
    marker = folder / RESTORING
    if folder.exists() and not marker.exists() and {it.name for it in folder.iterdir()} - {LOCK, GITIGNORE}:
        raise StorageRefused(f"The data folder {folder} isn't empty. Choose another one with --data.")
    if not file.is_file():
        raise StorageRefused(f"There is no backup {file}.")
    lock = FolderLock.take(folder)
    try:
        clear(folder)
        marker.touch(mode=0o600)
        _sync(folder)
        left_out = read_archive(file, partial(_extract, folder))
        _check(folder / DATABASE)
        _sync_all(folder)
        marker.unlink()
        _sync(folder)
    except BaseException as exc:
        clear(folder)
        if isinstance(exc, (OSError, tarfile.TarError, sqlite3.Error)):
            raise StorageRefused(f"Couldn't restore the backup {file}: {exc}.") from exc
        raise
    finally:
        lock.release()
    return left_out


def copy_beside(database: Path, version: int) -> Path:
    """Copies a database beside itself before a migration changes it; returns the copy's path.

    Replaces the copy of an earlier attempt: the database may have been used since.
    """
    copy = database.with_name(f"{database.name}{BEFORE}{version:04}")
    partial = copy.with_name(f"{copy.name}.partial")
    _check_room(database)
    try:
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(partial)) as target:
            source.backup(target)  # including what is still in the log
        _sync(partial)
        partial.replace(copy)
        _sync(copy.parent)
    except (OSError, sqlite3.Error) as exc:
        raise StorageRefused(
            f"The database needs a migration, but couldn't be copied to {copy} first: {exc}. Nothing was "
            "changed."
        ) from exc
    return copy


def _check_room(database: Path) -> None:
    """Refuses to start what would fill the disk: a copy, and tables that briefly exist twice."""
    log = database.with_name(f"{database.name}-wal")
    size = sum(file.stat().st_size for file in (database, log) if file.exists())
    free = shutil.disk_usage(database.parent).free
    if free < COPIES * size:
        raise StorageRefused(
            f"The database needs a migration, which takes {_megabytes(COPIES * size)} on the disk of "
            f"{database.parent} for a copy and for rebuilt tables; {_megabytes(free)} are free. Free up "
            "space and start again. Nothing was changed."
        )


def _megabytes(size: int) -> str:
    return f"{math.ceil(size / 1_000_000):,} MB"


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _copy_database(database: Path, copy: Path) -> None:
    os.close(os.open(copy, os.O_CREAT | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as source:
        # One read transaction: writers continue, and the copy is of one moment.
        source.execute("VACUUM INTO ?", [str(copy)])
    _check(copy)


def _check(database: Path) -> None:
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as opened:
        ((verdict,),) = opened.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"the database is damaged: {verdict}")


def _write_archive(folder: Path, copy: Path, file: Path) -> list[LeftOut]:
    """Writes everything that a backup contains; returns what it leaves out."""
    left_out: dict[str, LeftOut] = {}
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as raw:
        archive = ArchiveWriter(raw)
        _add_files(archive, folder, left_out)
        _copy_database(folder / DATABASE, copy)
        archive.add(PurePosixPath(DATABASE), partial(os.open, copy, os.O_RDONLY | os.O_CLOEXEC))
        copy.unlink()
        _add_files(archive, folder, left_out)
        archive.finish()
    return [*left_out.values()]


def _add_files(archive: ArchiveWriter, folder: Path, left_out: dict[str, LeftOut]) -> None:
    """Adds the files that the archive doesn't contain yet."""
    for found in walk(folder):
        if isinstance(found, LeftOut):
            left_out[found.name] = found
        elif found.path not in archive:
            _add_file(archive, found, left_out)


def _add_file(archive: ArchiveWriter, found: BackupFile, left_out: dict[str, LeftOut]) -> None:
    try:
        archive.add(found.path, partial(open_file, found))
    except FileNotFoundError:
        return  # removed meanwhile: no row needs it
    except UnreadableFile as exc:
        if not found.kind.others_write:
            raise StorageRefused(
                f"Couldn't back up {str(found.path)!r}: {exc}. No backup was written, since conversations or "
                "secrets would be incomplete in it."
            ) from exc
        left_out[str(found.path)] = LeftOut(str(found.path), str(exc))


def _extract(folder: Path, path: PurePosixPath, mode: int, pieces: Iterator[bytes]) -> None:
    """Writes one file of a backup, for our account only."""
    target = folder / path
    for above in reversed(path.parents):  # each with the mode, which `parents=True` doesn't do
        (folder / above).mkdir(exist_ok=True, mode=0o700)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(target, flags, 0o600 | mode & 0o100), "wb") as file:
        for piece in pieces:
            file.write(piece)


def _sync_all(folder: Path) -> None:
    for inner, _, names in os.walk(folder):
        for name in names:
            _sync(Path(inner, name))
        _sync(Path(inner))
