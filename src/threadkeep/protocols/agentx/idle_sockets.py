"""Idle sockets: those that follow no session and whose client has not signed in by a message."""

from typing import Protocol


class IdleSocket(Protocol):
    """A socket that can be closed to make room."""

    def make_room(self) -> None:
        """Closes for another socket."""
        ...


class IdleSockets:
    """Idle sockets need no sign-in, so their number is limited."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sockets: dict[IdleSocket, None] = {}

    def add(self, socket: IdleSocket) -> None:
        """Adds a socket; the oldest makes room if need be."""
        self._sockets[socket] = None
        if len(self._sockets) > self._most:
            oldest = next(iter(self._sockets))
            self.discard(oldest)
            oldest.make_room()

    def discard(self, socket: IdleSocket) -> None:
        """Removes a socket that is now in use or closed."""
        self._sockets.pop(socket, None)
