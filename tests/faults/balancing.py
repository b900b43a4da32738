"""What stands in front of several nodes, as nginx does: each request goes to the next of them."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress

from threadkeep.tasks import end_tasks

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_KEPT_OPEN = re.compile(rb"\r\nconnection: *keep-alive", re.IGNORECASE)
_BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 12\r\nConnection: close\r\n\r\nBad Gateway\n"
_PIECE = 65_536

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """Passes requests to nodes in turn.

    A node that takes no connection is passed over. Where one breaks off before it answers, the client gets
    502, since nobody knows whether it has heard the request; where it breaks off later, so does the answer.
    """

    def __init__(self, ports: Iterable[int]) -> None:
        self._ports = list(ports)
        self._next = 0
        self._serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody has connected."""
        serving = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        """Lets go of everybody."""
        await end_tasks(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Has a node respond to one request; each has its own connection."""
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if not await self._pass_on(_KEPT_OPEN.sub(b"\r\nConnection: close", head) + body, writer):
                    writer.write(_BAD_GATEWAY)
                    await writer.drain()
        finally:
            writer.close()

    async def _pass_on(self, request: bytes, client: asyncio.StreamWriter) -> bool:
        """Whether anything of a response came."""
        node = await self._connect()
        if node is None:
            return False
        response, writer = node
        writer.write(request)
        has_begun = False
        try:
            with suppress(ConnectionError):
                while piece := await response.read(_PIECE):
                    has_begun = True
                    client.write(piece)
                    await client.drain()
        finally:
            writer.close()
        return has_begun

    async def _connect(self) -> Streams | None:
        for _ in self._ports:
            port = self._ports[self._next % len(self._ports)]
            self._next += 1
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None


@asynccontextmanager
async def balancing(ports: Iterable[int]) -> AsyncGenerator[str]:
    """Where nodes are reached together."""
    balancer = Balancer(ports)
    server = await asyncio.start_server(balancer.accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await balancer.close()
