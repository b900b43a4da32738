"""A light HTTP client: many connections, kept open, read by one thread without waiting for any of them."""

import selectors
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple


class Request(NamedTuple):
    """A request as bytes, and the name under which its time is kept."""

    name: str
    sent: bytes


class Timed(NamedTuple):
    """How long an answer took."""

    name: str
    seconds: float


def request(
    method: str, path: str, *, name: str = "", token: str | None = None, body: bytes = b""
) -> Request:
    """A request, with a body of JSON if any."""
    sign_in = f"Authorization: Bearer {token}\r\n" if token else ""
    length = "" if method == "GET" else f"Content-Length: {len(body)}\r\n"
    kind = "Content-Type: application/json\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{sign_in}{kind}{length}\r\n"
    return Request(name, head.encode() + body)


class Clients:
    """So many clients of one server; each sends its next request when the last one is answered."""

    def __init__(self, port: int, count: int) -> None:
        self._connections = [_Connection(port) for _ in range(count)]
        self._selector = selectors.DefaultSelector()
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def drive(self, requests: Iterator[Request]) -> list[Timed]:
        """Sends everything and waits for every answer."""
        times: list[Timed] = []
        under_way = sum(connection.send_next(requests) for connection in self._connections)
        while under_way:
            for key, _ in self._selector.select():
                connection: _Connection = key.data
                if done := connection.receive():
                    times.append(done)
                    under_way -= not connection.send_next(requests)
        return times

    def ask(self, one: Request) -> bytes:
        """The body of one answer."""
        self.drive(iter([one]))
        return self._connections[0].body

    def close(self) -> None:
        """Hangs up."""
        self._selector.close()
        for connection in self._connections:
            connection.socket.close()


class _Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.body = b""
        self._received = bytearray()
        self._end = 0
        self._name, self._sent_at = "", 0.0

    def send_next(self, requests: Iterator[Request]) -> bool:
        """Sends the next request, if there is one."""
        following = next(requests, None)
        if following is None:
            return False
        self._received.clear()
        self._end = 0
        self._name, self._sent_at = following.name, time.perf_counter()
        self.socket.sendall(following.sent)
        return True

    def receive(self) -> Timed | None:
        """Takes what has arrived; the time of the answer once it is whole."""
        received = self._received
        received += self.socket.recv(1 << 18)
        if not self._end and (head_end := received.find(b"\r\n\r\n")) > 0:
            head = bytes(received[:head_end]).lower()
            if not head.startswith((b"http/1.1 200", b"http/1.1 201")):
                raise RuntimeError(f"the server answered {bytes(received)!r}")
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._end = head_end + 4 + int(length)
        if not self._end or len(received) < self._end:
            return None
        self.body = bytes(received[received.find(b"\r\n\r\n") + 4 :])
        return Timed(self._name, time.perf_counter() - self._sent_at)
