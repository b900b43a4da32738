"""The files of documents, as they lie in the workspaces of agents."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.errors import StorageUnavailable

COPIED_AT_ONCE = 1024 * 1024


def keep_file(file: BinaryIO, path: Path, *, most: int | None = None) -> tuple[int, str]:
    """Copies a file to its place, onto the disk itself; its size and hash. Stops beyond `most` bytes."""
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
    except OSError as exc:
        with suppress(OSError):
            path.unlink()
        raise StorageUnavailable(f"The file cannot be kept: {exc.strerror}.") from exc
    return size, digest.hexdigest()
