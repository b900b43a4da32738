"""Processes that are measured: what they use of processors, memory and disk (Linux)."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.peers.contender import UVICORN
from bench.peers.environments import ROOT, environment, python_of
from bench.peers.sqlite_files import take_in_logs

START_S = 90
END_S = 15
COUNTED_BYTES = 8

_SOURCE = Path(__file__).parent / "syncs.c"
_CPU_CLOCK = 2


@dataclass(frozen=True, slots=True)
class Process:
    """A process with its children."""

    pid: int
    counter: Path | None = None
    """Where its syncs are counted."""

    def cpu_s(self) -> float:
        """The processor time used so far, also by threads that have ended."""
        # This is what clock_getcpuclockid makes of a process's number.
        return sum(time.clock_gettime((~pid << 3) | _CPU_CLOCK) for pid in _family(self.pid))

    def memory_kb(self) -> float:
        """The resident memory."""
        return sum(_resident_kb(pid) for pid in _family(self.pid))

    def syncs(self) -> int | None:
        """How often it has made a file durable; nothing where there is no C compiler to count it with."""
        return None if self.counter is None else int.from_bytes(self.counter.read_bytes(), "little")


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has just ended
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _resident_kb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def start(
    command: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None, *, talks: bool = False
) -> "subprocess.Popen[str]":
    """Starts something in a folder of its own; what it prints goes to a file beside it, unless it talks."""
    counted: dict[str, str] = {}
    if library := sync_counter():
        counter = counter_of(folder)
        if not counter.exists():
            counter.write_bytes(bytes(COUNTED_BYTES))
        counted = {"LD_PRELOAD": str(library), "BENCH_SYNCS": str(counter)}
    with folder.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(folder), **counted, **(extra or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if talks else log,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def counter_of(folder: Path) -> Path:
    """Where the syncs of what runs in a folder are counted."""
    return folder.with_suffix(".syncs")


def process_in(folder: Path, pid: int) -> Process:
    """What is measured of a process that runs in a folder."""
    return Process(pid, counter_of(folder) if sync_counter() else None)


@cache
def sync_counter() -> Path | None:
    """The library that counts syncs, compiled when it is first needed."""
    compiler = shutil.which("cc")
    library = ROOT / "build" / "peers" / "syncs.so"
    if compiler is None:
        return None
    library.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    return library if subprocess.run(command, check=False).returncode == 0 else None


def wait_until_open(port: int, process: "subprocess.Popen[str]", log: Path) -> None:
    """Waits until a server takes connections."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"it did not start: {log.read_text()[-500:]}")


def end(process: "subprocess.Popen[str]", how: signal.Signals = signal.SIGTERM) -> None:
    """Ends a process with its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, how)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serve_model() -> Generator[str]:
    """The model in a process of its own; yields its address."""
    port = free_port()
    with TemporaryDirectory(prefix="threadkeep-peers-") as name:
        folder = Path(name, "model")
        folder.mkdir()
        # It closes no idle connection: a busy client would learn of it too late.
        options = ("--timeout-keep-alive", "600", "--port", str(port))
        command = [str(python_of(None)), *UVICORN, *options, "bench.peers.model:create_app"]
        process = start(command, folder)
        try:
            wait_until_open(port, process, folder.with_suffix(".log"))
            yield f"http://127.0.0.1:{port}"
        finally:
            end(process)


def disk_bytes(folder: Path) -> int:
    """What a folder holds once every SQLite file in it has taken in its log."""
    take_in_logs(folder)
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # SQLite has just removed it
            size += path.stat().st_size if path.is_file() else 0
    return size
