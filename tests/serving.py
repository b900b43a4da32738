"""A real server process, as a user runs it."""

import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import threadkeep
from tests.waiting import PATIENCE_S

SOURCE = str(Path(threadkeep.__file__).parents[1])  # the package under test, wherever it is installed from


class ServerProcess:
    """`threadkeep serve` on a free port."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "threadkeep", "serve", "--port", "0", "--data", str(folder / "data")],
            cwd=folder,
            env={**kept, "PYTHONPATH": SOURCE, "THREADKEEP_SHUTDOWN_GRACE_S": "0", **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout
        announced = re.search(r"http://\S+:\d+", self.process.stdout.readline())
        assert announced, "the server did not start"
        self.url = announced[0]

    def stop(self) -> int:
        """Ends it in good order."""
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


@contextmanager
def serving(folder: Path, environment: Mapping[str, str] | None = None) -> Generator[ServerProcess]:
    """A server while the block runs."""
    server = ServerProcess(folder, environment)
    try:
        yield server
    finally:
        server.stop()
