"""The same reads through HTTP, against a bare ASGI app that runs the same SQL.

Both servers run under uvicorn in processes of their own. Beside the time of a request its cost is
compared, the server's processor time: client, database and server share the cores of one machine.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from typing import Any, cast

import msgspec

from bench.bare import DATABASE_VARIABLE
from bench.client import Clients, Request, request
from bench.databases import Copies
from bench.measure import Effort, compare
from bench.sample import Sample
from bench.servers import Server, serve, serve_threadkeep
from bench.table import Aim, Line

CLIENTS = 8
AIM = Aim("≤", 2.5)


def through_http(copies: Copies, sample: Sample, effort: Effort) -> Sequence[Line]:
    """Every read, over the wire."""
    with ExitStack() as stack:
        servers = (
            stack.enter_context(serve("bench.bare:create_app", {DATABASE_VARIABLE: copies.floor_url})),
            stack.enter_context(serve_threadkeep(copies.ours_url)),
        )
        sides = [_Side(server) for server in servers]
        lines = [
            line for name, asked in _requests(sample).items() for line in _compare(name, asked, sides, effort)
        ]
        for side in sides:
            side.clients.close()
    return lines


def _requests(sample: Sample) -> Mapping[str, Request]:
    messages = f"/api/conversations/{sample.read}/messages?order=desc&limit="
    return {
        "latest 20 of 5,000": request("GET", f"{messages}20"),
        "latest 50 of 5,000": request("GET", f"{messages}50"),
        "list 20 of 1,000 conversations": request("GET", "/api/conversations?limit=20"),
        "get-or-create an existing one": request(
            "PUT", f"/api/agents/{sample.dataset.agent_id}/conversation"
        ),
    }


class _Side:
    """A server with its clients, and the figures of its blocks."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.clients = Clients(server.port, CLIENTS)
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def block(self, asked: Request, times: int) -> None:
        """Notes microseconds a request and microseconds of the server's processors a request."""
        cpu, begun = self._server.cpu_s(), time.perf_counter()
        self.clients.drive(repeat(asked, times))
        self.wall.append((time.perf_counter() - begun) * 1e6 / times)
        self.cpu.append((self._server.cpu_s() - cpu) * 1e6 / times)


def _compare(name: str, asked: Request, sides: Sequence[_Side], effort: Effort) -> Iterator[Line]:
    bare, ours = (_ids(side.clients.ask(asked)) for side in sides)
    assert bare == ours, f"{name}: the two servers answer different things"
    for side in sides:
        side.block(asked, effort.requests_a_block)
        side.wall.clear()
        side.cpu.clear()
    for number in range(effort.http_rounds):
        for side in sides if number % 2 else reversed(sides):
            side.block(asked, effort.requests_a_block)
    floor, threadkeep = sides
    yield Line(f"HTTP: {name}", compare(floor.wall, threadkeep.wall), AIM)
    yield Line(f"HTTP: {name}, server CPU", compare(floor.cpu, threadkeep.cpu), AIM)


def _ids(body: bytes) -> list[str]:
    answer = cast("dict[str, Any]", msgspec.json.decode(body))
    return [item["id"] for item in answer.get("items", [answer])]
