"""Lines from a process that may write anything: bounded in memory and in cost."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from threadkeep.ports.tools import MOST_RESULT_BYTES

CHUNK_BYTES = 64 * 1024
LOG_BYTES = 64 * 1024

_BYTES_A_SECOND = 16 * 1024 * 1024
_UNPACED_BYTES = 4 * 1024 * 1024
_BYTES_AT_ONCE = 64 * 1024
MESSAGE_COSTS = 32 * 1024
_LINE_COSTS = 1024
_ENDS_BYTES = 256
_OURS = "[threadkeep]"
_STARTED = "The server was started."
_MOST_COMPLAINT = 300


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that was too long to keep: only its beginning and end are known."""

    head: bytes
    tail: bytes
    length: int


class Pace:
    """Slows a reader down, so that a server that floods us takes little time from other work.

    Unread data stays in the pipe, and the server waits.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time()
        self._left: float = _UNPACED_BYTES
        self._at_once = 0

    async def spend(self, amount: int) -> None:
        """Waits until this much may be read; lets others run now and then in any case."""
        now = self._loop.time()
        self._left = min(_UNPACED_BYTES, self._left + (now - self._at) * _BYTES_A_SECOND) - amount
        self._at = now
        self._at_once += amount
        if self._left < 0 or self._at_once >= _BYTES_AT_ONCE:
            self._at_once = 0
            await asyncio.sleep(max(0.0, -self._left / _BYTES_A_SECOND))


class _Line:
    """A line as it arrives."""

    def __init__(self, begin: bytes = b"") -> None:
        self._kept = bytearray()
        self._tail = b""
        self._length = 0
        self.add(begin)

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MOST_RESULT_BYTES:
            self._kept += piece
        else:
            del self._kept[_ENDS_BYTES:]
            self._tail = (self._tail + piece)[-_ENDS_BYTES:]

    def whole(self) -> bytes | LongLine:
        kept = bytes(self._kept)
        return kept if self._length <= MOST_RESULT_BYTES else LongLine(kept, self._tail, self._length)


async def read_lines(reader: asyncio.StreamReader) -> AsyncGenerator[bytes | LongLine]:
    """Incoming lines, at a pace that leaves time for others."""
    pace, line = Pace(), _Line()
    while chunk := await reader.read(CHUNK_BYTES):
        await pace.spend(len(chunk))
        first, *further = chunk.split(b"\n")
        line.add(first)
        for piece in further:
            whole, line = line.whole(), _Line(piece)
            yield whole
            is_message = isinstance(whole, bytes) and whole.startswith(b"{")
            await pace.spend(MESSAGE_COSTS if is_message else _LINE_COSTS)
    yield line.whole()


class ServerLog:
    """The latest of a server's stderr, and of our notes about it."""

    def __init__(self) -> None:
        self._kept = b""

    def write(self, data: bytes) -> None:
        """Adds to the log; drops the oldest when it gets too long."""
        self._kept = (self._kept + data)[-LOG_BYTES:]

    def note(self, text: str) -> None:
        """Adds a line of our own."""
        begin = "" if not self._kept or self._kept.endswith(b"\n") else "\n"
        self.write(f"{begin}{_OURS} {text}\n".encode())

    def started(self) -> None:
        """Marks the start of another process."""
        self.note(_STARTED)

    async def follow(self, reader: asyncio.StreamReader) -> None:
        """Adds everything that arrives."""
        pace = Pace()
        while chunk := await reader.read(CHUNK_BYTES):
            self.write(chunk)
            await pace.spend(len(chunk))

    @property
    def text(self) -> str:
        """The current log."""
        return self._kept.decode(errors="replace")

    @property
    def complaint(self) -> str:
        """The server's complaint since its latest start: from the first error on, or the last line."""
        lines = [line.strip() for line in self.text.rpartition(_STARTED)[2].splitlines()]
        lines = [line for line in lines if line and not line.startswith(_OURS)]
        errors = [number for number, line in enumerate(lines) if "error" in line.lower()]
        return " ".join(lines[errors[0] if errors else -1 :])[:_MOST_COMPLAINT]
