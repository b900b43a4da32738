"""Backs up a data folder to one file while Threadkeep runs, and restores it."""

import math
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.workspace import is_cached
from threadkeep.storage.folder import LOCK_NAME, FolderLock

DATABASE_NAME = "threadkeep.db"
_NOT_COPIED = {DATABASE_NAME, f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm", LOCK_NAME}
_BEFORE = ".before-"
_COPIES_BEFORE = f"{DATABASE_NAME}{_BEFORE}"
COPIES = 3
"""A migration needs disk space for this many databases: a copy, the log and the new tables."""


def back_up(folder: Path, file: Path) -> int:
    """Writes a whole data folder into one file; returns its size. Later writes are not included.

    It copies the database as of one moment, before the files: every file that a row refers to was written
    before the row, so nothing in the backup refers to a missing file.
    """
    if not (folder / DATABASE_NAME).is_file():
        raise StorageRefused(f"No database found in {folder}. Set the data folder with --data.")
    if file.exists():
        raise StorageRefused(f"{file} already exists. Choose another file name.")
    partial = file.with_name(f"{file.name}.partial")
    try:
        with TemporaryDirectory(dir=file.parent, prefix=".threadkeep-backup-") as beside:
            copy = Path(beside) / DATABASE_NAME
            _copy_database(folder / DATABASE_NAME, copy)
            _write_archive(folder, copy, partial)
        partial.replace(file)
    except (OSError, sqlite3.Error) as exc:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StorageRefused(f"Couldn't write the backup; no file was left behind: {exc}.") from exc
    return file.stat().st_size


def restore(file: Path, folder: Path) -> None:
    """Creates a data folder from a backup; refuses a folder that is not empty."""
    if folder.exists() and any(it.name != LOCK_NAME for it in folder.iterdir()):
        raise StorageRefused(f"The data folder {folder} isn't empty. Choose another one with --data.")
    lock = FolderLock.take(folder)
    try:
        with tarfile.open(file) as archive:
            members = archive.getmembers()
            if DATABASE_NAME not in (member.name for member in members):
                raise StorageRefused(f"{file} isn't a Threadkeep backup.")
            for member in members:
                _extract(archive, member, folder)
        _check(folder / DATABASE_NAME)
    except (OSError, tarfile.TarError, sqlite3.Error) as exc:
        raise StorageRefused(f"Couldn't restore the backup {file}: {exc}.") from exc
    finally:
        lock.release()


def copy_beside(database: Path, version: int) -> Path:
    """Copies a database beside itself before a migration changes it; returns the copy's path.

    Replaces the copy of an earlier attempt: the database may have been used since.
    """
    copy = database.with_name(f"{database.name}{_BEFORE}{version:04}")
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


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Extracts one file of a backup: nothing outside the folder, no links, no devices."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not member.isreg():
        raise StorageRefused(f"The backup contains {member.name!r}, which isn't part of a Threadkeep backup.")
    content = archive.extractfile(member)
    assert content is not None
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with content, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(content, file)


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


def _write_archive(folder: Path, database: Path, file: Path) -> None:
    with (
        os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw,
        tarfile.open(fileobj=raw, mode="w") as archive,
    ):
        archive.add(database, DATABASE_NAME)
        for path in _files(folder):
            with suppress(FileNotFoundError):  # purged meanwhile; nothing in the copy needs it
                archive.add(path, str(PurePosixPath(path.relative_to(folder))), recursive=False)
        archive.close()
        raw.flush()
        os.fsync(raw.fileno())


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.parent == folder and (path.name in _NOT_COPIED or path.name.startswith(_COPIES_BEFORE)):
            continue
        if path.is_file() and not path.is_symlink() and not is_cached(path.relative_to(folder)):
            yield path
