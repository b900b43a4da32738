"""How long a fresh `threadkeep serve` takes until its first response, and what it then holds in memory.

Without a local model: the gateway is a provider that nobody asks.
"""

import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.postgres import free_port

from bench.servers import START_S, checkout_environment

REMOTE_MODEL = {
    "THREADKEEP_GATEWAY": "openai",
    "THREADKEEP_GATEWAY_URL": "http://127.0.0.1:9",
    "THREADKEEP_GATEWAY_API_KEY": "none",
    "THREADKEEP_MODEL": "scripted",
    "THREADKEEP_EMBEDDING_URL": "off",
}
ASKED = b"GET /api/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Start:
    """A server to be started on a fresh folder."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._port = free_port()
        serve = ("serve", "--port", str(self._port), "--data", str(folder))
        self.command = [sys.executable, "-m", "threadkeep", *serve]
        self.environment: Mapping[str, str] = {**checkout_environment(tree), **REMOTE_MODEL}

    def wait_for_response(self) -> None:
        """Asks until there is a response; it is a good one."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", self._port)) as connection:
                    connection.sendall(ASKED)
                    status = connection.recv(65_536).partition(b"\r\n")[0]
            except OSError:
                time.sleep(0.005)
                continue
            assert status.startswith(b"HTTP/1.1 200"), status
            return
        raise RuntimeError("a server did not start")
