"""A data folder: one process at a time, and private to its account."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.data_folder import GITIGNORE, KINDS, LOCK, RESTORING, make_data_folder
from threadkeep.domain.errors import StorageRefused

# Nothing else is touched: others may use the folder too.
_OURS = tuple(dict.fromkeys(kind.root for kind in KINDS))


def make_private(folder: Path, names: Iterable[str] = _OURS) -> None:
    """Denies other accounts access to what we created in a folder; they may see the folder itself."""
    for name in names:
        for path in folder.glob(name):
            with contextlib.suppress(OSError):  # another account's, or deleted
                mode = path.lstat().st_mode
                if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and mode & 0o077:
                    path.chmod(stat.S_IMODE(mode) & 0o700)


def make_private_database(path: Path) -> None:
    """Creates a database file if need be, and denies other accounts access to it and its side files.

    SQLite gives its log the file's mode.
    """
    with contextlib.suppress(OSError):  # opening it will report what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    make_private(path.parent, (path.name, f"{path.name}-*", f"{path.name}.*"))


def clear(folder: Path) -> None:
    """Removes what we created in a folder, except the lock and what keeps git out."""
    for name in _OURS:
        for path in folder.glob(name):
            if path.name in {LOCK, GITIGNORE}:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def check_restored(folder: Path) -> None:
    """Refuses a folder into which a backup was restored only in part."""
    if (folder / RESTORING).exists():
        raise StorageRefused(
            f"Restoring a backup to {folder} was interrupted. Run `threadkeep restore` again: it starts over."
        )


@dataclass(frozen=True, slots=True)
class FolderLock:
    """Held while it is open; the operating system releases it even after `kill -9`."""

    descriptor: int

    @staticmethod
    def take(folder: Path) -> "FolderLock":
        """Creates the folder if need be and locks it, or reports who holds it."""
        try:
            make_data_folder(folder)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise StorageRefused(f"Can't write to the data folder {folder}: {exc.strerror}.") from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StorageRefused(
                f"The data folder {folder} is in use by another Threadkeep (process {holder}). "
                "Stop it, or choose another folder with --data."
            ) from exc
        lock = FolderLock(descriptor)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as exc:
            lock.release()
            raise StorageRefused(f"Can't write to the data folder {folder}: {exc.strerror}.") from exc
        return lock

    def release(self) -> None:
        """Releases the lock."""
        os.close(self.descriptor)
