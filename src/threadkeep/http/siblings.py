"""What the workers of one server tell each other: their metrics, so that each of them can report all.

Otherwise, a scrape would show the counters of whichever worker accepted its connection.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

PATIENCE_S = 2.0
"""A worker that doesn't respond by then is starting, or stuck; its metrics are left out."""
PART_BYTES = 64 * 1024

Lines = Sequence[tuple[socket.socket, socket.socket]]
"""For each worker, where to ask it and where it is asked. A question carries a socket for the response."""


def connect_siblings(count: int) -> Lines:
    """The lines between this many workers. Their parent makes them: a restarted worker uses them, too."""
    lines = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
    for end in (end for line in lines for end in line):
        end.setblocking(False)
    return lines


class Siblings:
    """All workers of a server, for the one with this number."""

    def __init__(self, number: int, lines: Lines) -> None:
        self.number = number
        self._lines = lines

    def respond_with(self, text: Callable[[], str]) -> None:
        """Responds with this from now on when a worker asks."""
        _, asked = self._lines[self.number - 1]
        asyncio.get_running_loop().add_reader(asked, _respond, asked, text)

    async def ask(self) -> dict[int, str]:
        """What each worker responds, this one included, by their numbers."""
        responses = await asyncio.gather(*(_ask(asking) for asking, _ in self._lines))
        return {number: text for number, text in enumerate(responses, start=1) if text}


def _respond(asked: socket.socket, text: Callable[[], str]) -> None:
    _, files, _, _ = socket.recv_fds(asked, 1, 1)
    for file in files:
        with socket.socket(fileno=file) as line, suppress(OSError):  # whoever asked waits no longer
            line.sendall(text().encode())


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
