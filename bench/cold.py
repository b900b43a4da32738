"""How long a fresh `threadkeep serve` takes until its first response.

Without a local model: the gateway is a provider that nobody asks.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.postgres import free_port

from bench.measure import Effort
from bench.servers import START_S, TREE, Server, checkout_environment
from bench.table import Aim, Row, Times

REMOTE_MODEL = {
    "THREADKEEP_GATEWAY": "openai",
    "THREADKEEP_GATEWAY_URL": "http://127.0.0.1:9",
    "THREADKEEP_GATEWAY_API_KEY": "none",
    "THREADKEEP_MODEL": "scripted",
    "THREADKEEP_EMBEDDING_URL": "off",
}
AIM = Aim("≤", 0.8, "P50")
ASKED = b"GET /api/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Start:
    """A server to be started on a fresh folder."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.port = free_port()
        serve = ("serve", "--port", str(self.port), "--data", str(folder))
        self.command = [sys.executable, "-m", "threadkeep", *serve]
        self.environment: Mapping[str, str] = {**checkout_environment(tree), **REMOTE_MODEL}

    def wait_for_response(self) -> None:
        """Asks until there is a response; it is a good one."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", self.port)) as connection:
                    connection.sendall(ASKED)
                    status = connection.recv(65_536).partition(b"\r\n")[0]
            except OSError:
                time.sleep(0.005)
                continue
            assert status.startswith(b"HTTP/1.1 200"), status
            return
        raise RuntimeError("a server did not start")


def measure(effort: Effort) -> Iterator[Row]:
    """Starts on empty folders and on one that is known already, from the command to the response."""
    empty: list[float] = []
    known: list[float] = []
    cpu: list[float] = []
    for _ in range(effort.starts):
        with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
            for times in (empty, known):
                took, used = _start(Path(folder))
                times.append(took)
                cpu.append(used)
    yield Times.of("from the command to the first response, empty folder", empty, "s", AIM)
    yield Times.of("the same with a database that is there", known, "s", AIM)
    yield Times.of("the process's CPU until then", cpu, "s")


def _start(folder: Path) -> tuple[float, float]:
    """Seconds until the first response, and of processor time."""
    start = Start(TREE, folder)
    begun = time.perf_counter()
    process = subprocess.Popen(
        start.command, env=start.environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        start.wait_for_response()
        return time.perf_counter() - begun, Server(start.port, process.pid).cpu_s()
    finally:
        process.kill()
        process.wait()
