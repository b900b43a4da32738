"""What the Threadkeeps of a run have done, in the order in which they did it."""

import os
import threading
from pathlib import Path
from typing import Any

import msgspec

Entry = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class Diary:
    """Entries of one process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> None:
        """Adds an entry."""
        with self._lock:
            self._entries.append(entry)

    def read(self) -> list[Entry]:
        """All entries."""
        with self._lock:
            return list(self._entries)


class DiaryFile(Diary):
    """Entries of several processes, a line each, which outlive them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, entry: Entry) -> None:
        """Adds an entry; it is there whatever becomes of the process."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, _encode(entry) + b"\n")
        finally:
            os.close(file)

    def read(self) -> list[Entry]:
        """All entries."""
        if not self._path.exists():
            return []
        return [_decode(line) for line in self._path.read_bytes().split(b"\n") if line]
