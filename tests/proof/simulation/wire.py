"""How users reach nodes: requests in this process, which take time, get lost, and end with their node."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from tests.proof.simulation.cluster import Cluster
from tests.proof.simulation.loop import VirtualLoop
from tests.proof.simulation.node import SimulatedNode
from tests.proof.wire import Answer, Lost

PATIENCE_S = 60.0


class SimulatedWire:
    """Requests to one of the nodes that serve."""

    def __init__(self, cluster: Cluster, loop: VirtualLoop, loses: float) -> None:
        self._cluster = cluster
        self._loop = loop
        self._chance = cluster.chance("wire")
        self.loses = loses
        self._open: set[_Exchange] = set()
        self._number = 0
        cluster.on_death.append(self._break)

    async def request(
        self, user: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request and its whole response; raises Lost if the connection breaks."""
        exchange = await self._exchange(user, method, path, body, headers)
        loses = self._chance.random() < self.loses
        received = bytearray()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (message := await exchange.next()) is not None:
                    received += message
        except TimeoutError:
            raise Lost from None
        finally:
            self._close(exchange)
        if loses:
            raise Lost
        return Answer(exchange.node.place.name, exchange.status, exchange.headers, bytes(received))

    async def stream(
        self, user: str, path: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[Answer | bytes]:
        """A response as it comes: its head first, then its pieces. Raises Lost if the connection breaks."""
        exchange = await self._exchange(user, "GET", path, None, headers)
        try:
            first = await exchange.next()
            yield Answer(exchange.node.place.name, exchange.status, exchange.headers, b"")
            while first is not None:
                if first:
                    yield first
                if self._chance.random() < self.loses / 4:
                    raise Lost
                first = await exchange.next()
        finally:
            self._close(exchange)

    async def _exchange(
        self, user: str, method: str, path: str, body: Any, headers: Mapping[str, str] | None
    ) -> "_Exchange":
        chance = self._chance
        await asyncio.sleep(chance.uniform(0.001, 0.02))
        serving = self._cluster.serving
        if not serving or chance.random() < self.loses / 2:
            raise Lost
        node = chance.choice(serving)
        self._number += 1
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-length": str(len(content)), **(headers or {})}
        exchange = _Exchange(node, self._loop, _scope(user, method, path, headers, self._number), content)
        self._open.add(exchange)
        exchange.begin()
        return exchange

    def _close(self, exchange: "_Exchange") -> None:
        self._open.discard(exchange)
        exchange.leave()

    def _break(self, node: SimulatedNode) -> None:
        for exchange in sorted((it for it in self._open if it.node is node), key=lambda it: it.number):
            self._loop.elsewhere(exchange.lose, after_s=0.01)


def _scope(user: str, method: str, path: str, headers: Mapping[str, str], number: int) -> dict[str, Any]:
    path, _, query = path.partition("?")
    given = {"host": "threadkeep.example", "x-user": user, "content-type": "application/json", **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("192.0.2.1", 1024 + number % 60_000),
        "server": ("threadkeep.example", 80),
        "state": {},
    }


class _Exchange:
    """One request at one node."""

    def __init__(self, node: SimulatedNode, loop: VirtualLoop, scope: dict[str, Any], body: bytes) -> None:
        self.node = node
        self.number = scope["client"][1]
        self._loop = loop
        self._scope = scope
        self._body: bytes | None = body
        self._left = loop.create_future()
        self._pieces: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.status = 0
        self.headers: dict[str, str] = {}

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other

    def begin(self) -> None:
        """The request arrives."""
        self._loop.at(self.node.place, self._serve())

    async def _serve(self) -> None:
        assert self.node.app is not None
        try:
            await self.node.app(self._scope, self._receive, self._send)
        except Exception as exc:
            self._pieces.put_nowait(Lost(repr(exc)))
        else:
            self._pieces.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.shield(self._left)
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            self._pieces.put_nowait(message.get("body", b""))

    async def next(self) -> bytes | None:
        """The next piece of the body; None at its end."""
        piece = await self._pieces.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    def leave(self) -> None:
        """The client is gone."""
        if not self._left.done():
            self._left.set_result(None)

    def lose(self) -> None:
        """The connection breaks."""
        self._pieces.put_nowait(Lost())
