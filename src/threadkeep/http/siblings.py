"""What the processes of one server send each other: their metrics, so that each of them can report all.

Otherwise, a scrape would show the counters of whichever process accepted its connection.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

PATIENCE_S = 2.0
"""A process that doesn't respond by then is starting, or stuck; its metrics are left out."""
PART_BYTES = 64 * 1024

Lines = Sequence[tuple[socket.socket, socket.socket]]
"""For each process, where to ask it and where it is asked. A question carries a socket for the response."""


def connect_siblings(count: int) -> Lines:
    """The lines between this many processes. Their parent makes them: a restarted process uses them, too."""
    lines = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
    for end in (end for line in lines for end in line):
        end.setblocking(False)
    return lines


class Siblings:
    """All processes of a server, for the one with this number."""

    def __init__(self, number: int, lines: Lines) -> None:
        self.number = number
        self._lines = lines
        self._text: Callable[[], str] = str
        self._responding: set[asyncio.Task[None]] = set()

    def respond_with(self, text: Callable[[], str]) -> None:
        """Responds with this from now on when a process asks."""
        self._text = text
        _, asked = self._lines[self.number - 1]
        asyncio.get_running_loop().add_reader(asked, self._respond, asked)

    async def ask(self) -> dict[int, str]:
        """What each process responds, this one included, by their numbers."""
        others = {at: line for at, (line, _) in enumerate(self._lines, start=1) if at != self.number}
        responses = await asyncio.gather(*map(_ask, others.values()))
        texts = {self.number: self._text(), **dict(zip(others, responses, strict=True))}
        return {number: texts[number] for number in sorted(texts) if texts[number]}

    def _respond(self, asked: socket.socket) -> None:
        _, files, _, _ = socket.recv_fds(asked, 1, 1)
        for file in files:
            task = asyncio.create_task(_send(socket.socket(fileno=file), self._text()))
            self._responding.add(task)
            task.add_done_callback(self._responding.discard)


async def _send(line: socket.socket, text: str) -> None:
    line.setblocking(False)
    with line, suppress(TimeoutError, OSError):  # the process that asked may have given up
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.get_running_loop().sock_sendall(line, text.encode())


async def _ask(asking: socket.socket) -> str:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    text = bytearray()
    with ours, suppress(TimeoutError, OSError):
        with theirs:
            socket.send_fds(asking, [b"?"], [theirs.fileno()])
        async with asyncio.timeout(PATIENCE_S):
            while part := await asyncio.get_running_loop().sock_recv(ours, PART_BYTES):
                text += part
            return text.decode()
    return ""
