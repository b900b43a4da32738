"""Servers in processes of their own, all under uvicorn with the same settings."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.postgres import free_port

from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token

UVICORN = (
    "-m", "uvicorn", "--factory", "--loop", "uvloop", "--http", "httptools", "--log-level", "warning",
    "--no-access-log", "--no-server-header",
)  # fmt: skip
START_S = 60
TREE = Path(__file__).parents[1]
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that takes requests."""

    port: int
    pid: int

    def memory_kb(self) -> int:
        """What it and the programs that it runs hold in memory (RSS)."""
        all_status = (Path(f"/proc/{pid}/status").read_text() for pid in family(self.pid))
        return sum(int(it.partition("\nVmRSS:")[2].split()[0]) for it in all_status)

    def cpu_s(self) -> float:
        """The processor time that all its threads, and those of its workers, have used so far (Linux)."""
        return sum(time.clock_gettime(_cpu_clock(pid)) for pid in family(self.pid))


# Signed in as in production: without it, each new connection costs a look at who is at its other end.
SECRET = "only for this measurement; nobody else has it"
TOKEN = issue_token(SECRET, User(UserId("local")), 24 * 3600)
SIGN_IN = {"THREADKEEP_JWT_SECRET": SECRET, "THREADKEEP_SECRET_KEY": SECRET}

# What is measured is how much the server can do, not how much it allows one user.
UNHURRIED = {
    "THREADKEEP_USER_RUNNING_TURNS": "0",
    "THREADKEEP_USER_TURNS_PER_MINUTE": "0",
    "THREADKEEP_SHUTDOWN_GRACE_S": "0",
}


@contextmanager
def serve(factory: str, environment: Mapping[str, str]) -> Generator[Server]:
    """Runs the app that a factory makes, for as long as the block lasts."""
    port = free_port()
    paths = os.pathsep.join(map(os.path.abspath, sys.path))
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, *UVICORN, "--port", str(port), factory],
            env={**_own_environment(), "PYTHONPATH": paths, **UNHURRIED, **environment},
            cwd=folder,
        )
        try:
            _wait_until_open(port, process)
            yield Server(port, process.pid)
        finally:
            process.terminate()
            process.wait()


def serve_threadkeep(url: str, **settings: str) -> AbstractContextManager[Server]:
    """Threadkeep on a database."""
    return serve("bench.hosted:create_app", {"THREADKEEP_DATABASE_URL": url} | settings)


@contextmanager
def serve_command(
    url: str,
    *arguments: str,
    program: Sequence[str] = ("threadkeep",),
    tree: Path = TREE,
    environment: Mapping[str, str] = NOTHING,
) -> Generator[Server]:
    """`threadkeep serve` of a checkout, as an operator starts it, on a database."""
    port = free_port()
    command = [sys.executable, "-m", *program, "serve", "--port", str(port), *arguments]
    settings = {"THREADKEEP_DATABASE_URL": url, **UNHURRIED, **SIGN_IN}
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder, Path(folder, "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**checkout_environment(tree), **settings, **environment},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_open(port, process, Path(folder, "log"))
            yield Server(port, process.pid)
        finally:
            process.terminate()
            process.wait()


def checkout_environment(tree: Path) -> dict[str, str]:
    """The environment of a program that runs a checkout's Threadkeep, measured by our own code."""
    return {**_own_environment(), "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(TREE)))}


def _own_environment() -> dict[str, str]:
    """Neither the caller's settings nor a threadkeep.toml in the caller's folder change what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("THREADKEEP_")}


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(it) for thread in threads for it in (thread / "children").read_text().split()]
    return [pid, *(it for child in children for it in family(child))]


def _cpu_clock(pid: int) -> int:
    """The clock of a process's processor time, as `clock_getcpuclockid(3)` names it on Linux."""
    return ~pid << 3 | 2


def _wait_until_open(port: int, process: "subprocess.Popen[bytes]", log: Path | None = None) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"a server did not start: {log.read_text() if log else 'see above'}")
