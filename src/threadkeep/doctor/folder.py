"""Whether the data folder is usable, and safe from others."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from threadkeep.doctor.finding import Finding
from threadkeep.domain.data_folder import LOCK
from threadkeep.settings import PREFIX, USUAL_DATA, Settings

MUCH_DISK, LITTLE_DISK = 1_000_000_000, 100_000_000


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Whether it exists or can be created, who owns it, and how much space is free."""
    folder = settings.data
    if not folder.exists():
        parent = next(it for it in folder.absolute().parents if it.exists())
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield _missing(folder, settings)
            yield _disk(parent, settings)
        else:
            yield Finding(
                "data folder",
                "problem",
                f"Can't create {folder} in {parent}.",
                f"Give this user write access there, or choose another folder with {PREFIX}DATA.",
            )
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        advice = f"Give this user write access (chown), or choose another folder with {PREFIX}DATA."
        yield Finding("data folder", "problem", f"Can't write to {folder}.", advice)
        return
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        message = f"Other users of this machine can read {folder}, which contains conversations and keys."
        yield Finding("data folder", "warning", message, f"chmod 700 {folder}")
    else:
        # On PostgreSQL, several servers share it, and none locks it.
        used = f"; {_holder(folder)}" if settings.on_sqlite else ""
        yield Finding("data folder", "ok", f"{folder} belongs to this user{used}.")
    yield _disk(folder, settings)


def _missing(folder: Path, settings: Settings) -> Finding:
    """One that nobody named comes by itself; a named one may be mistyped, and then nothing was checked."""
    if not settings.on_sqlite:
        return Finding("data folder", "ok", f"{folder} will be created with the first agent or file.")
    if folder == USUAL_DATA:
        message = f"{folder.absolute()} will be created at the first start."
        return Finding("data folder", "ok", message)
    return Finding(
        "data folder",
        "warning",
        f"{folder.absolute()} doesn't exist, so that there is no data to check.",
        f"Correct --data or {PREFIX}DATA if a server has run. Otherwise, its first start creates the folder.",
    )


def _holder(folder: Path) -> str:
    """Whether a server runs on it; takes a shared lock for a moment, which blocks nobody."""
    holder = "unknown"
    try:
        with (folder / LOCK).open() as lock:
            holder = lock.read(32).strip() or holder
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return "no server has used it yet"
    except BlockingIOError:
        # Nobody can read that process's settings.
        return (
            f"a server is using it (process {holder}). These checks use the settings of this shell and folder"
        )
    except OSError:
        return "can't tell whether a server is using it"
    return "no server is using it"


def _disk(folder: Path, settings: Settings) -> Finding:
    free = shutil.disk_usage(folder).free
    message = f"{free / 1e9:.1f} GB free on the disk of {settings.data}."
    if free < LITTLE_DISK:
        return Finding(
            "disk", "problem", message, "Free up space: once the disk is full, Threadkeep can't write."
        )
    if free < MUCH_DISK:
        return Finding("disk", "warning", message, "Free up space soon: a backup needs as much as the data.")
    return Finding("disk", "ok", message)
