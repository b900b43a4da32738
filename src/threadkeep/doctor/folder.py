"""Whether the data folder can be used, and is safe from others."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from threadkeep.doctor.finding import Finding
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.folder import LOCK_NAME

MUCH_DISK, LITTLE_DISK = 1_000_000_000, 100_000_000


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Whether it is there or can be made, whose it is, and how much room there is."""
    folder = settings.data
    if not folder.exists():
        parent = next(it for it in folder.absolute().parents if it.exists())
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield Finding("data folder", "ok", f"{folder} is made at the first start.")
            yield _disk(parent, settings)
        else:
            yield Finding(
                "data folder",
                "problem",
                f"{folder} cannot be made in {parent}.",
                f"Let this user write there, or choose another folder with {PREFIX}DATA.",
            )
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        advice = f"Let this user write there (chown), or choose another folder with {PREFIX}DATA."
        yield Finding("data folder", "problem", f"{folder} cannot be written.", advice)
        return
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        message = f"{folder} is open to other users of this machine; conversations and keys lie in it."
        yield Finding("data folder", "warning", message, f"chmod 700 {folder}")
    else:
        yield Finding("data folder", "ok", f"{folder} is this user's own; {_holder(folder)}.")
    yield _disk(folder, settings)


def _holder(folder: Path) -> str:
    """Whether a server runs on it; for a moment the lock is shared, which hinders nobody."""
    holder = "unknown"
    try:
        with (folder / LOCK_NAME).open() as lock:
            holder = lock.read(32).strip() or holder
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return "no server has run on it"
    except BlockingIOError:
        return f"a server runs on it (process {holder})"
    except OSError:
        return "whether a server runs on it is unknown"
    return "no server runs on it"


def _disk(folder: Path, settings: Settings) -> Finding:
    free = shutil.disk_usage(folder).free
    message = f"{free / 1e9:.1f} GB free where {settings.data} lies."
    if free < LITTLE_DISK:
        return Finding("disk", "problem", message, "Make room: writes are refused once it is full.")
    if free < MUCH_DISK:
        return Finding("disk", "warning", message, "Make room soon; a backup needs as much as the data.")
    return Finding("disk", "ok", message)
