"""A network between a server of ours and PostgreSQL, which can fail in every way."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit

from threadkeep.tasks import end_tasks

_PIECE = 65_536


class Relay:
    """Passes bytes on in both directions."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._delay_s = 0.0
        self._is_away = False
        self._serving: set[asyncio.Task[None]] = set()

    def freeze(self) -> None:
        """From now on, what is connected stays connected, and nothing gets through; new connections work."""
        self._open.clear()
        self._open = asyncio.Event()
        self._open.set()

    def lead_to(self, port: int) -> None:
        """New connections go there from now on."""
        self._port = port

    def cut(self) -> None:
        """Breaks off every connection; new ones work."""
        for serving in self._serving:
            serving.cancel()

    @contextmanager
    def away(self) -> Generator[None]:
        """What is connected breaks off, and nobody can connect."""
        self._is_away = True
        self.cut()
        try:
            yield
        finally:
            self._is_away = False

    def slow_down(self, delay_s: float) -> None:
        """Everything takes so much longer, in each direction, until this is called with 0."""
        self._delay_s = delay_s

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody has connected."""
        if self._is_away:
            writer.close()
            return
        serving = asyncio.create_task(self._serve(reader, writer, self._open))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        """Closes all connections."""
        await end_tasks(*self._serving)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the server is away
            writer.close()
            return
        ways = [asyncio.create_task(self._pass_on(reader, back, is_open))]
        ways.append(asyncio.create_task(self._pass_on(there, writer, is_open)))
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks(*ways)
            writer.close()
            back.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(_PIECE):
                await is_open.wait()
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def relay_to(database_url: str) -> AsyncGenerator[tuple[str, Relay]]:
    """A relay to a database on a TCP port, and the database's address through it."""
    parts = urlsplit(database_url)
    assert parts.hostname, "the tests' PostgreSQL listens on TCP"
    relay = Relay(parts.hostname, parts.port or 5432)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    login, _, _ = parts.netloc.rpartition("@")
    try:
        yield parts._replace(netloc=f"{login}@127.0.0.1:{port}").geturl(), relay
    finally:
        server.close()
        await relay.close()
