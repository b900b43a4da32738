"""The lock on a data folder: one process at a time."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.errors import StorageRefused

LOCK_NAME = "threadkeep.lock"


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
            raise StorageRefused(f"The data folder {folder} cannot be written: {exc.strerror}.") from exc
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
            raise StorageRefused(f"The data folder {folder} cannot be written: {exc.strerror}.") from exc
        return lock

    def release(self) -> None:
        """Lets others in."""
        os.close(self.descriptor)
