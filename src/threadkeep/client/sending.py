"""A file on its way to the server."""

from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from os import fstat
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sending:
    """How much of a file has been sent, in bytes."""

    path: Path
    sent: int
    size: int


class SentFile(FileIO):
    """A file that reports its progress; never in memory as a whole."""

    def __init__(self, path: Path, on_progress: Callable[[Sending], None] | None) -> None:
        super().__init__(path)
        self._path = path
        self._size = fstat(self.fileno()).st_size
        self._on_progress = on_progress

    def read(self, size: int | None = -1, /) -> bytes:
        """The next piece."""
        piece = super().read(size)
        if piece and self._on_progress is not None:
            self._on_progress(Sending(self._path, self.tell(), self._size))
        return piece
