"""A data folder: one process at a time, and what lies in it is its account's own."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.errors import StorageRefused

LOCK_NAME = "threadkeep.lock"

# What we make in a data folder. Nothing else is touched: the folder may be one that others use as well.
_OURS = ("threadkeep.*", "secret.key*", "token", "agents", "payloads")


def make_private(folder: Path, names: Iterable[str] = _OURS) -> None:
    """Takes what we have made in a folder from other accounts, who may see the folder itself."""
    for name in names:
        for path in folder.glob(name):
            with contextlib.suppress(OSError):  # another account's, or gone
                mode = path.lstat().st_mode
                if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and mode & 0o077:
                    path.chmod(stat.S_IMODE(mode) & 0o700)


def make_private_database(path: Path) -> None:
    """Makes a database's file if need be, and takes it and what lies beside it from other accounts.

    SQLite gives its log the mode of the file.
    """
    with contextlib.suppress(OSError):  # whoever opens it tells what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    make_private(path.parent, (path.name, f"{path.name}-*", f"{path.name}.*"))


@dataclass(frozen=True, slots=True)
class FolderLock:
    """Held while it is open; the operating system lets go of it even after `kill -9`."""

    descriptor: int

    @staticmethod
    def take(folder: Path) -> "FolderLock":
        """Makes the folder if need be and locks it, or says who has it."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        """Lets others in."""
        os.close(self.descriptor)
