"""How long `threadkeep serve` takes until it has answered its first request: `python -m bench.cold_start`.

Beside it, in turns: Python that does nothing, and a bare ASGI application under uvicorn. The server has no
local model. `--tree` names another checkout, such as an older one, to measure with the same interpreter.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.postgres import free_port

from bench.servers import START_S, UVICORN

ROUNDS = 10
SOURCE = Path(__file__).parents[1] / "src"
_ASK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Start(NamedTuple):
    """What one start took, in seconds."""

    wall: float
    cpu: float


async def bare(scope: dict[str, Any], receive: object, send: Callable[..., Any]) -> None:
    """The least that an ASGI application can be."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


def bare_app() -> object:
    """The application for uvicorn."""
    return bare


def measure(rounds: int = ROUNDS, trees: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Medians of wall and CPU seconds, and of their ratios to the bare application within a round."""
    sources = {"": SOURCE, **{f" ({tree.name})": tree / "src" for tree in trees}}
    starts: dict[str, Callable[[], Start]] = {"python -c pass": _nothing, "bare ASGI": _bare}
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        for number, (name, source) in enumerate(sources.items()):
            kept = Path(folder, str(number))
            kept.mkdir()
            starts[f"fresh folder{name}"] = lambda source=source: _fresh(source)
            starts[f"existing folder{name}"] = lambda source=source, kept=kept: _threadkeep(source, kept)
        taken: dict[str, list[Start]] = {name: [] for name in starts}
        for number in range(rounds + 1):
            for name, start in starts.items():
                once = start()
                if number:  # the first one fills caches
                    taken[name].append(once)
    floor = taken["bare ASGI"]
    return {
        name: {
            "wall_s": round(median(it.wall for it in mine), 3),
            "cpu_s": round(median(it.cpu for it in mine), 3),
            "least_wall_s": round(min(it.wall for it in mine), 3),
            "wall_ratio": round(median(it.wall / one.wall for it, one in zip(mine, floor, strict=True)), 2),
            "cpu_ratio": round(median(it.cpu / one.cpu for it, one in zip(mine, floor, strict=True)), 2),
        }
        for name, mine in taken.items()
    }


def _nothing() -> Start:
    before, begun = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    wall, after = time.perf_counter() - begun, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Start(wall, used)


def _bare() -> Start:
    return _until_answered([*UVICORN, "bench.cold_start:bare_app"], Path.cwd(), Path.cwd())


def _fresh(source: Path) -> Start:
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        return _threadkeep(source, Path(folder))


def _threadkeep(source: Path, folder: Path) -> Start:
    return _until_answered(["-m", "threadkeep", "serve"], source, folder)


def _until_answered(arguments: list[str], source: Path, folder: Path) -> Start:
    """From the start of the process until the first response has arrived."""
    port = free_port()
    given = {name: value for name, value in os.environ.items() if not name.startswith("THREADKEEP_")}
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    settings = {"THREADKEEP_GATEWAY": "openai", "THREADKEEP_GATEWAY_URL": "http://127.0.0.1:1"}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments, "--port", str(port)],
        env={**given, **settings, "PYTHONPATH": str(source)},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with _connect(port) as line:
            line.sendall(_ASK)
            assert line.recv(64).startswith(b"HTTP/1.1 200"), "the server refused"
        wall = time.perf_counter() - begun
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        return Start(wall, sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9)
    finally:
        process.terminate()
        process.wait()


def _connect(port: int) -> socket.socket:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.002)
    raise RuntimeError("a server did not start")


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m bench.cold_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another checkout")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.rounds, tuple(arguments.tree)), indent=2))
