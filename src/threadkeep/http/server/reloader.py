"""A server for development: its process ends and starts again when a file changes.

The parent has the socket, so the port stays and requests wait meanwhile; what it has not loaded, the next
process loads anew. As in `supervisor.py`, it has no event loop and no threads, and no process outlives it.
"""

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from threadkeep.http.server.supervisor import (
    DRAIN,
    ServingProcess,
    describe_end,
    receive,
    run_as_child,
    woken_by_signals,
)

LOOKS_EVERY_S = 0.25
MOST_FILES = 5_000
"""Beyond these, in the order of the folders, changes go unnoticed."""
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages"})


class WatchedFiles:
    """The Python files of some folders, or single ones; links are not followed."""

    def __init__(self, places: Collection[Path]) -> None:
        self._places = places
        self._seen = self._look()

    def changed(self) -> Sequence[Path]:
        """The files that have come, gone or changed since the last look."""
        before, self._seen = self._seen, self._look()
        paths = before.keys() | self._seen.keys()
        return sorted(path for path in paths if before.get(path) != self._seen.get(path))

    def _look(self) -> dict[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        for path in (path for place in self._places for path in _python_files(place)):
            if len(found) >= MOST_FILES:
                break
            with suppress(OSError):  # it has just gone
                stat = path.stat()
                found[path] = stat.st_mtime_ns, stat.st_size
        return found


def _python_files(place: Path) -> Sequence[Path]:
    if not place.is_dir():
        return [place]
    found: list[Path] = []
    for folder, folders, names in os.walk(place):
        here = Path(folder)
        folders[:] = sorted(it for it in folders if not _is_left_out(here / it))
        found += (here / name for name in sorted(names) if name.endswith(".py"))
        if len(found) >= MOST_FILES:
            break
    return found


def _is_left_out(folder: Path) -> bool:
    """Whether a folder isn't the author's: hidden ones, environments, caches."""
    return folder.name.startswith(".") or folder.name in _LEFT_OUT or (folder / "pyvenv.cfg").exists()


@dataclass(slots=True)
class _Child:
    pid: int
    line: socket.socket
    started_at: float


class Reloader:
    """The parent of the one process that serves; `say` prints a line for whoever develops."""

    def __init__(
        self,
        files: WatchedFiles,
        work: Callable[[ServingProcess], int],
        when_ready: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._files = files
        self._work = work
        self._when_ready = when_ready
        self._say = say
        self._child: _Child | None = None
        self._changed: list[Path] = []
        """What has changed since the process started; it starts again when nothing more changes."""
        self._is_restarting = False
        self._has_served = False
        self._signals_count = 0

    def run(self) -> int:
        """Serves until SIGINT or SIGTERM; the exit status."""
        gc.freeze()
        with woken_by_signals() as woken:
            self._start()
            while self._child is not None or not self._signals_count:
                lines = [woken, *([self._child.line] if self._child else ())]
                readable, _, _ = select.select(lines, [], [], LOOKS_EVERY_S)
                if woken in readable:
                    self._stop(len(woken.recv(64)))
                if self._child is not None and self._child.line in readable:
                    self._hear(self._child)
                if not self._signals_count:
                    self._look()
        return 0

    def _look(self) -> None:
        """Restarts the process when something has changed, and then nothing for a moment."""
        if changed := self._files.changed():
            self._changed += changed
        elif self._changed and not self._is_restarting:
            names = ", ".join(dict.fromkeys(path.name for path in self._changed))
            self._changed.clear()
            self._say(f"Reloading: {names} changed.")
            self._restart()

    def _restart(self) -> None:
        if self._child is None:
            self._start()
            return
        self._is_restarting = True
        with suppress(OSError):  # it has just ended
            self._child.line.send(DRAIN)

    def _hear(self, child: _Child) -> None:
        if not receive(child.line):
            self._note_end(child)
        elif self._has_served:
            self._say(f"Reloaded in {time.monotonic() - child.started_at:.1f} s.")
        else:
            self._has_served = True
            self._when_ready()

    def _note_end(self, child: _Child) -> None:
        child.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        self._child = None
        if self._signals_count:
            return
        if self._is_restarting:
            self._is_restarting = False
            self._start()
        else:
            self._say(f"The server {describe_end(status)}. It starts again when a file changes.")

    def _stop(self, signals: int) -> None:
        """The first signal drains the process, the second ends it, the third kills it."""
        for _ in range(signals):
            self._signals_count += 1
            if self._child is None:
                continue
            with suppress(OSError):  # it has just ended
                if self._signals_count == 1:
                    self._child.line.send(DRAIN)
                elif self._signals_count == 2:
                    self._child.line.shutdown(socket.SHUT_WR)
                else:
                    os.kill(self._child.pid, signal.SIGKILL)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        sys.stdout.flush()  # or the process would print what is in the buffer, too
        pid = os.fork()
        if pid == 0:
            ours.close()
            run_as_child(self._work, ServingProcess(1, theirs))
        theirs.close()
        self._child = _Child(pid, ours, time.monotonic())
