"""Several processes that serve one port, and their parent, which starts, restarts and ends them.

All processes accept connections from the socket that the parent has opened. So whichever is free takes the
next one, none is lost when a process dies, and a second server on the port is refused. With one socket for
each process (`SO_REUSEPORT`), a busy or dead one would keep its share waiting.

The parent has no event loop, no threads and no database. That makes it safe to fork at any time, which starts
a process in a moment and lets all of them share the memory of the code.

A pair of sockets connects the parent with each process. When one end dies, the other notices: no process
outlives its parent.
"""

import asyncio
import gc
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

log = logging.getLogger("threadkeep")

READY = b"ready"
DRAIN = b"drain"
STABLE_S = 30.0
"""A process that ends later is restarted at once; one that keeps dying sooner, after growing pauses."""
LONGEST_PAUSE_S = 30.0
RETRY_S = 5.0


class ServingProcess:
    """One of the processes, as it knows itself."""

    def __init__(self, number: int, line: socket.socket) -> None:
        self.number = number
        """From 1 on; a restarted process has the number of the one before it."""
        self._line = line

    def report_ready(self) -> None:
        """Tells the parent that this process serves."""
        with suppress(OSError):  # the parent has died; `obey` notices
            self._line.send(READY)

    def obey(self, *, drain: Callable[[], None], retire: Callable[[], None], end: Callable[[], None]) -> None:
        """Drains when the parent says so, and ends without delay when it says nothing more or is dead."""
        loop = asyncio.get_running_loop()

        def hear() -> None:
            if receive(self._line):
                drain()
            else:
                loop.remove_reader(self._line)
                end()

        loop.add_reader(self._line, hear)
        # From an operator: this process alone ends, and another takes its place.
        loop.add_signal_handler(signal.SIGTERM, retire)


@dataclass(slots=True)
class _Child:
    """One of the processes, as the parent knows it."""

    number: int
    pid: int
    line: socket.socket
    started_at: float


class Supervisor:
    """The parent of the processes."""

    def __init__(
        self, count: int, work: Callable[[ServingProcess], int], when_ready: Callable[[], None]
    ) -> None:
        self._count = count
        self._work = work
        self._when_ready = when_ready
        self._children: dict[int, _Child] = {}
        self._due: dict[int, float] = {}
        """When to start which process."""
        self._failures = [0] * (count + 1)
        """How often in a row each process has died young."""
        self._signals_count = 0
        self._is_serving = False
        self._status = 0

    def run(self) -> int:
        """Serves until SIGINT or SIGTERM; the exit status.

        The others start when the first one is ready: it has migrated the database, and if it can't start,
        the reason is reported once.
        """
        gc.freeze()  # collections in the processes don't touch, and so don't copy, what they share
        with woken_by_signals() as woken:
            self._start(1)
            while self._children or self._due:
                lines = {child.line: child for child in self._children.values()}
                readable, _, _ = select.select([woken, *lines], [], [], self._until_due())
                for line in readable:
                    if line is woken:
                        self._stop(len(woken.recv(64)))
                    else:
                        self._hear(lines[line])
                self._start_due()
        return self._status

    def _hear(self, child: _Child) -> None:
        if not receive(child.line):
            self._replace_ended(child)
        else:
            log.info("worker %d (process %d) is ready", child.number, child.pid)
            if not self._is_serving and not self._signals_count:
                self._is_serving = True
                self._when_ready()
                self._due |= dict.fromkeys(range(2, self._count + 1), 0.0)

    def _replace_ended(self, child: _Child) -> None:
        """A process has ended: starts another one, unless we are ending, too."""
        del self._children[child.number]
        child.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        if self._signals_count or not self._is_serving:
            self._status = self._status or abs(status)
            return
        lasted = time.monotonic() - child.started_at >= STABLE_S
        self._failures[child.number] = failures = (
            0 if status == 0 or lasted else self._failures[child.number] + 1
        )
        pause = min(2.0 ** (failures - 2), LONGEST_PAUSE_S) if failures > 1 else 0.0
        self._due[child.number] = time.monotonic() + pause
        log.log(
            logging.WARNING if status else logging.INFO,
            "worker %d (process %d) %s; restarting it %s",
            child.number,
            child.pid,
            describe_end(status),
            f"in {pause:.0f} s" if pause else "now",
        )

    def _stop(self, signals: int) -> None:
        """The first signal drains the processes, the second ends them, the third kills them."""
        for _ in range(signals):
            self._signals_count += 1
            self._due.clear()
            for child in self._children.values():
                with suppress(OSError):  # it has just ended
                    if self._signals_count == 1:
                        child.line.send(DRAIN)
                    elif self._signals_count == 2:
                        child.line.shutdown(socket.SHUT_WR)
                    else:
                        os.kill(child.pid, signal.SIGKILL)

    def _until_due(self) -> float | None:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None

    def _start_due(self) -> None:
        now = time.monotonic()
        for number in [number for number, at in self._due.items() if at <= now]:
            del self._due[number]
            try:
                self._start(number)
            except OSError as exc:  # there is no memory, or no process number, just now
                log.warning("couldn't start worker %d, retrying in %.0f s: %s", number, RETRY_S, exc)
                self._due[number] = now + RETRY_S

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        sys.stdout.flush()  # or the process would print what is in the buffer, too
        pid = os.fork()
        if pid == 0:
            for line in (ours, *(child.line for child in self._children.values())):
                line.close()  # while it is open anywhere, its process doesn't notice that the parent has died
            run_as_child(self._work, ServingProcess(number, theirs))
        theirs.close()
        self._children[number] = _Child(number, pid, ours, time.monotonic())


def run_as_child(work: Callable[[ServingProcess], int], process: ServingProcess) -> None:
    """Serves until the process ends; never returns to what the parent was doing."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent passes it on
        status = work(process)
    except BaseException:  # noqa: BLE001 - the process ends here, and it is logged
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(status)


def receive(line: socket.socket) -> bytes:
    """What the other end says; nothing if it has died."""
    try:
        return line.recv(len(DRAIN))
    except ConnectionError:
        return b""


def describe_end(status: int) -> str:
    """How a process has ended."""
    return f"ended with status {status}" if status >= 0 else f"was killed by {signal.Signals(-status).name}"


def _take_note(number: int, frame: object) -> None:
    """Does nothing: the wakeup socket reports the signal."""


@contextmanager
def woken_by_signals() -> Generator[socket.socket]:
    """A socket that receives a byte for each SIGINT and SIGTERM."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _take_note)
    with woken, waker:
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(-1)
