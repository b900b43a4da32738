"""A light reader of many event streams at once: one thread, which counts frames and looks at times."""

import re
import selectors
import socket
import time
from collections.abc import Iterable, Sequence

from bench.client import Request

MOST_SILENCE_S = 30

_SENT_AT = re.compile(rb"(\d+\.\d{6}) ")
_FRAME_ENDS, _STREAM_ENDS = b"\n\n", b"0\r\n\r\n"


class Stream:
    """One response of server-sent events. Its pieces of text say when the model sent them."""

    def __init__(self, port: int, asked: Request) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = b""
        self.frames = 0
        self.bytes = 0
        self.first_at = 0.0
        self.sent_at: list[float] = []
        self.came_at: list[float] = []
        self._unread = b""
        self.asked_at = time.monotonic()
        self.socket.sendall(asked.sent)

    @property
    def turn_path(self) -> str:
        """Where the turn of this stream is found."""
        return self.head.lower().partition(b"\r\nlocation: ")[2].partition(b"\r\n")[0].decode()

    @property
    def first_ms(self) -> float:
        """From the request to the first frame."""
        return (self.first_at - self.asked_at) * 1000

    @property
    def lags_ms(self) -> Iterable[float]:
        """From the model to here, piece by piece."""
        return ((came - sent) * 1000 for sent, came in zip(self.sent_at, self.came_at, strict=True))

    def receive(self) -> bool:
        """Takes what has arrived; tells whether the response goes on."""
        data = self.socket.recv(1 << 18)
        now = time.monotonic()
        if not data:
            raise RuntimeError(f"the server hung up after {self.frames} frames")
        data = self._unread + data
        if not self.head:
            self.head, _, data = data.partition(b"\r\n\r\n")
            if not self.head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the server answered {self.head + data!r}")
        complete, ends, self._unread = data.rpartition(_FRAME_ENDS)
        if ends:
            self.first_at = self.first_at or now
            self.frames += complete.count(_FRAME_ENDS) + 1
            self.bytes += len(complete)
            self.sent_at += map(float, _SENT_AT.findall(complete))
            self.came_at += [now] * (len(self.sent_at) - len(self.came_at))
        return not self._unread.endswith(_STREAM_ENDS)


def shown(streams: Sequence[Stream]) -> list[int]:
    """How many pieces of each have come."""
    return [len(it.came_at) for it in streams]


class Streams:
    """Streams of one server that are read together."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._live = 0

    def open(self, requests: Iterable[Request]) -> list[Stream]:
        """Asks for streams, reading those that are open already."""
        opened: list[Stream] = []
        for asked in requests:
            stream = Stream(self._port, asked)
            self._selector.register(stream.socket, selectors.EVENT_READ, stream)
            self._live += 1
            opened.append(stream)
            self._read(0)
        return opened

    def open_one_by_one(self, requests: Iterable[Request], a_second: int) -> list[Stream]:
        """Asks for so many a second: people do not all begin in the same moment."""
        opened: list[Stream] = []
        for asked in requests:
            opened += self.open([asked])
            self.read_for(1 / a_second)
        return opened

    def read_heads(self, streams: Sequence[Stream]) -> None:
        """Reads until each of these has been answered."""
        while not all(stream.head for stream in streams):
            self._read(MOST_SILENCE_S)

    def read_pieces(self, streams: Sequence[Stream], count: float) -> None:
        """Reads until these have shown so many pieces together."""
        while sum(shown(streams)) < count:
            self._read(MOST_SILENCE_S)

    def read_for(self, seconds: float) -> None:
        """Reads what comes in so many seconds."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def read_all(self) -> None:
        """Reads every stream to its end."""
        while self._live:
            self._read(MOST_SILENCE_S)

    def _read(self, timeout_s: float) -> None:
        ready = self._selector.select(timeout_s)
        if timeout_s == MOST_SILENCE_S and not ready:
            raise RuntimeError(f"{self._live} streams have stopped")
        for key, _ in ready:
            stream: Stream = key.data
            if not stream.receive():
                self._selector.unregister(stream.socket)
                stream.socket.close()
                self._live -= 1
