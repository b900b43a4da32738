"""Reads many turns at once, whatever they stream over: one thread that looks for the times in the pieces."""

import contextlib
import re
import selectors
import socket
import time
from collections.abc import Iterable, Sequence

from bench.peers.contender import MOST_SILENCE_S, Conversation, Pace, ServerContender, connect

LONGEST_MARK = 64
"""More than a piece, or a mark for the end, can have of its bytes in the packet before."""

_SENT_AT = re.compile(rb"(\d+\.\d{6}) ")


class Turn:
    """One turn under way. Its pieces say when the model sent them."""

    def __init__(self, contender: ServerContender, port: int, conversation: Conversation, pace: Pace) -> None:
        self._contender = contender
        self.owns_socket = conversation.connection is None
        self.socket = conversation.connection or connect(port)
        self.sent_at: list[float] = []
        self.came_at: list[float] = []
        self.first_at = 0.0
        self.is_over = False
        self.failure = ""
        """Why it ended early, if the server said so or hung up."""
        self._has_head = not self.owns_socket
        self._tail: bytes = b""
        if not self.owns_socket:
            answer_waiting(contender, self.socket)
        asked = contender.question(conversation, pace.question)
        self.asked_at = time.monotonic()
        self.socket.sendall(asked)

    @property
    def first_event_ms(self) -> float:
        """From the question to whatever the server says first."""
        return (self.first_at - self.asked_at) * 1000

    @property
    def first_piece_ms(self) -> float:
        """From the question to the first piece of the reply."""
        return (self.came_at[0] - self.asked_at) * 1000

    @property
    def delays_ms(self) -> list[float]:
        """From the model to here, piece by piece."""
        return [(came - sent) * 1000 for sent, came in zip(self.sent_at, self.came_at, strict=True)]

    def receive(self) -> None:
        """Takes what has arrived."""
        try:
            data: bytes = self.socket.recv(1 << 18)
        except ConnectionError:
            data = b""
        now = time.monotonic()
        if not data:
            self._fail(f"the server hung up after {len(self.sent_at)} pieces")
            return
        _answer(self._contender, self.socket, data)
        data = self._tail + data
        if not self._has_head:
            head, ends, rest = data.partition(b"\r\n\r\n")
            if not ends:
                self._tail = data
                return
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                self._fail(f"the server answered {data[:300]!r}")
                return
            self._has_head, data = True, rest
        if data:
            self.first_at = self.first_at or now
        self._take_pieces(data, now)
        self.is_over = self._contender.turn_ends in data
        self._tail = data[-LONGEST_MARK:]

    def _fail(self, why: str) -> None:
        self.failure, self.is_over = why, True

    def _take_pieces(self, data: bytes, now: float) -> None:
        """Only what is newer than the last piece is one: some servers repeat the whole text at the end."""
        last = self.sent_at[-1] if self.sent_at else 0.0
        for found in _SENT_AT.findall(data):
            sent = float(found)
            if sent > last:
                self.sent_at.append(sent)
                self.came_at.append(now)
                last = sent


def answer_waiting(contender: ServerContender, connection: socket.socket) -> None:
    """Takes what came between turns, such as what the last one sent after its end, or a ping."""
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while data := connection.recv(1 << 16):
            _answer(contender, connection, data)
    connection.settimeout(MOST_SILENCE_S)


def _answer(contender: ServerContender, connection: socket.socket, data: bytes) -> None:
    if answer := contender.answer(data):
        connection.sendall(answer)


class Reader:
    """Turns of one server that are read together."""

    def __init__(self, contender: ServerContender, port: int) -> None:
        self._contender = contender
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._live: set[Turn] = set()

    def begin(self, conversations: Iterable[Conversation], pace: Pace) -> list[Turn]:
        """Begins a turn in each, reading those that have begun already."""
        begun: list[Turn] = []
        for conversation in conversations:
            turn = Turn(self._contender, self._port, conversation, pace)
            self._selector.register(turn.socket, selectors.EVENT_READ, turn)
            self._live.add(turn)
            begun.append(turn)
            self._read(0)
        return begun

    def read_all(self) -> None:
        """Reads every turn to its end."""
        while self._live:
            self._read_or_fail()

    def read_first_pieces(self, turns: Sequence[Turn]) -> None:
        """Reads until each has shown a piece, or failed."""
        while not all(turn.sent_at or turn.is_over for turn in turns):
            self._read_or_fail()

    def read_for(self, seconds: float) -> None:
        """Reads what comes in so many seconds."""
        until = time.monotonic() + seconds
        while self._live and (left := until - time.monotonic()) > 0:
            self._read(left)

    def close(self) -> None:
        """Hangs up on whatever still runs."""
        for turn in list(self._live):
            self._end(turn)

    def _read_or_fail(self) -> None:
        if not self._read(MOST_SILENCE_S):
            raise RuntimeError(f"{len(self._live)} turns have been silent for {MOST_SILENCE_S} s")

    def _read(self, timeout_s: float) -> bool:
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            turn: Turn = key.data
            turn.receive()
            if turn.is_over:
                self._end(turn)
        return bool(ready)

    def _end(self, turn: Turn) -> None:
        self._selector.unregister(turn.socket)
        self._live.discard(turn)
        if turn.owns_socket:
            turn.socket.close()
