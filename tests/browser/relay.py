"""A network that a test can cut: passes connections on to a server."""

import contextlib
import socket
import threading
from collections.abc import Generator
from urllib.parse import urlsplit


class Relay:
    """An address in front of another one."""

    def __init__(self, address: str) -> None:
        self.lead_to(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def lead_to(self, address: str) -> None:
        """Passes new connections on to this address."""
        parts = urlsplit(address)
        self._to = (parts.hostname, parts.port)

    def cut(self) -> None:
        """Breaks every connection that is open; new ones are taken."""
        for end in self._ends:
            with contextlib.suppress(OSError):  # gone already
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends it."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                self._ends += [near, far]
                self._threads += [
                    threading.Thread(target=_copy, args=ends) for ends in ((near, far), (far, near))
                ]
                for thread in self._threads[-2:]:
                    thread.start()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relayed(address: str) -> Generator[Relay]:
    """A relay while the block runs."""
    relay = Relay(address)
    try:
        yield relay
    finally:
        relay.close()
