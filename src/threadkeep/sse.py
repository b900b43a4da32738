"""Server-sent events: written as frames, and read from bytes as they arrive."""

import re
from typing import NamedTuple

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": keep-alive\n\n"
"""A comment, which readers ignore. It shows them, and proxies, that the stream is alive."""

MOST_EVENT_BYTES = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
# All three end a line in a stream, so each must start a new `data:` line.
_NEWLINE = re.compile(rb"\r\n|\n|\r")


def frame(data: str | bytes, *, event: str | None = None, id: str | int | None = None) -> bytes:  # noqa: A002
    """One event as written to a stream; a newline in the data starts another `data:` line."""
    body = data.encode() if isinstance(data, str) else data
    if b"\n" in body or b"\r" in body:
        body = _NEWLINE.sub(b"\ndata: ", body)
    id_line = "" if id is None else f"id: {id}\n"
    event_line = "" if event is None else f"event: {event}\n"
    return b"%b%b\n\n" % (f"{id_line}{event_line}data: ".encode(), body)


class ServerSentEvent(NamedTuple):
    """One event; `event` is empty if the stream names none."""

    event: bytes
    data: bytes


class EventTooLong(Exception):
    """One event is larger than anything a model sends."""


class EventReader:
    """Takes a stream in pieces that may end anywhere, and returns the complete events."""

    def __init__(self, most_bytes: int = MOST_EVENT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._size = 0  # bytes since the last empty line, except for at most one piece
        self._line: list[bytes] = []  # an unfinished line
        self._event = b""
        self._data: list[bytes] = []
        self._is_after_cr = False
        self._is_at_start = True

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that this piece completes."""
        if self._is_after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._is_after_cr = False
        if not chunk:
            return []
        self._size += len(chunk)
        events = self._read(self._lines(chunk))
        if self._size > self._most_bytes:
            raise EventTooLong
        return events

    def finish(self) -> list[ServerSentEvent]:
        """The last event, if the stream ended without a final empty line."""
        return self.feed(b"\n\n")

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The complete lines; keeps the rest."""
        self._is_after_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = None if chunk.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._line:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line.clear()
        if lines and self._is_at_start:
            lines[0] = lines[0].removeprefix(_BOM)
            self._is_at_start = False
        if rest is not None:
            self._line.append(rest)
        return lines

    def _read(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerSentEvent(self._event, b"\n".join(self._data)))
                    self._data.clear()
                self._event = b""
                self._size = 0
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._event = line[7:] if line.startswith(b"event: ") else line[6:]
            elif line == b"data":
                self._data.append(b"")
            elif line == b"event":
                self._event = b""
        return events
