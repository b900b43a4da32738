"""Idle sockets: those that follow no session and whose client has not signed in by what it sent."""

from typing import Protocol


class Idle(Protocol):
    """A socket that can be closed to make room."""

    def make_room(self) -> None:
        """Another socket needs its place."""
        ...


class IdleSockets:
    """Nobody had to sign in for these, so there are only so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sockets: dict[Idle, None] = {}

    def add(self, socket: Idle) -> None:
        """Another one; the oldest makes room if need be."""
        self._sockets[socket] = None
        if len(self._sockets) > self._most:
            oldest = next(iter(self._sockets))
            self.discard(oldest)
            oldest.make_room()

    def discard(self, socket: Idle) -> None:
        """One that is in use now, or has gone."""
        self._sockets.pop(socket, None)
