"""The memory of `threadkeep serve`, idle and for each open stream: `python -m bench.memory`.

Each kind of stream has a server of its own, without local models, on SQLite. The figures are the process's
own memory (PSS): before the first stream, and what each of so many streams adds while they are open.
"""

import argparse
import json
import re
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from bench.client import Request, request
from bench.sse import Streams
from bench.workers import Tree, paced_model, questions, threadkeep_serve

COUNTS = (200, 1000)
RATE, PIECES = 1, 3600
SETTLE_S = 5
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def measure(counts: Sequence[int] = COUNTS, kinds: Sequence[str] = ()) -> dict[str, Any]:
    """Megabytes when idle, and kilobytes a stream of each kind, by how many are open."""
    found: dict[str, Any] = {}
    with paced_model(PIECES, RATE) as model:
        for kind in kinds or KINDS:
            with threadkeep_serve({**model, "THREADKEEP_EMBEDDING_URL": "off"}) as server:
                found[kind] = _measure_kind(server, KINDS[kind], counts)
    return found


def pss_kb(server: Tree) -> int:
    """The memory of the server's processes; what they share counts once."""
    rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in server.pids())
    return sum(int(found[1]) for found in map(_PSS.search, rollups) if found)


def _measure_kind(server: Tree, kind: "Kind", counts: Sequence[int]) -> dict[str, Any]:
    streams = Streams(server.port)
    asked = questions(server.port, max(counts))
    opening = kind(server, streams, asked)
    opening(1)  # loads and caches what the first one needs
    streams.read_for(1)
    idle = pss_kb(server)
    figures: dict[str, Any] = {"idle_mb": round(idle / 1024, 1), "kb_per_stream": {}}
    opened = 0
    for count in counts:
        opening(count - opened)
        opened = count
        streams.read_for(SETTLE_S)
        figures["kb_per_stream"][count] = round((pss_kb(server) - idle) / count, 1)
    return figures


Kind = Callable[[Tree, Streams, list[Request]], Callable[[int], None]]
"""Prepares a server for streams of a kind; the result opens so many more."""


def _turns(server: Tree, streams: Streams, asked: list[Request]) -> Callable[[int], None]:
    """Turns that run, each with its reader."""
    left = iter([*asked, *questions(server.port, 1)])

    def open_more(count: int) -> None:
        for _ in range(count):
            streams.read_heads(streams.open([next(left)]))

    return open_more


def _followers(server: Tree, streams: Streams, asked: list[Request]) -> Callable[[int], None]:
    """Further readers of one turn."""
    (turn,) = streams.open(asked[:1])
    streams.read_heads([turn])
    follow = request("GET", f"{turn.turn_path}/events")
    return lambda count: streams.read_heads(streams.open([follow] * count))


def _user_events(server: Tree, streams: Streams, asked: list[Request]) -> Callable[[int], None]:
    """Pages that wait for news."""
    wait = request("GET", "/api/me/events")
    return lambda count: streams.read_heads(streams.open([wait] * count))


def _idle(server: Tree, streams: Streams, asked: list[Request]) -> Callable[[int], None]:
    """Connections that have asked once."""
    kept: list[socket.socket] = []

    def open_more(count: int) -> None:
        for _ in range(count):
            line = socket.create_connection(("127.0.0.1", server.port))
            line.sendall(request("GET", "/healthz").sent)
            line.recv(4096)
            kept.append(line)

    return open_more


def _sockets(server: Tree, streams: Streams, asked: list[Request]) -> Callable[[int], None]:
    """Web sockets, each subscribed to a conversation."""
    url = f"http://127.0.0.1:{server.port}"
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        made = client.get("/api/conversations?limit=1").json()["items"][0]
        session = client.get(f"/api/conversations/{made['id']}").json()["sessionId"]
    kept: list[Any] = []

    def open_more(count: int) -> None:
        for _ in range(count):
            line = connect(f"ws://127.0.0.1:{server.port}/ws", compression=None, legacy=True)
            line.send(json.dumps({"type": "subscribe", "sessionId": session}))
            kept.append(line)
        time.sleep(1)

    return open_more


KINDS: dict[str, Kind] = {
    "turns": _turns,
    "followers": _followers,
    "user events": _user_events,
    "web sockets": _sockets,
    "idle connections": _idle,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m bench.memory", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=())
    given = parser.parse_args()
    print(json.dumps(measure(given.counts, given.kinds), indent=2))
