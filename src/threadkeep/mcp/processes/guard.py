"""Runs one tool server, and ends it with everything that it has started.

    … threadkeep.mcp.processes.guard LIFELINE COMMAND [ARGUMENT …]

LIFELINE is the reading end of a pipe that only our process holds open for writing. Once that end is closed,
on purpose or because our process has died in any way (`kill -9` included), the guard ends the server. It
does the same if the server ends and leaves children behind. As a separate process with one thread, it can do
what a busy server with threads cannot: fork safely, and be the parent of orphans (on Linux), so that it finds
even a child that has left the process group.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

GRACE_S = 1.0
KILL_S = 5.0
LOOK_AGAIN_S = 0.05
NICENESS = 5
"""Tool servers yield to turns."""

NOT_STARTED = 127

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36


def main(lifeline: int, command: Sequence[str]) -> int:
    """Runs the command until it ends or the lifeline is cut; returns its exit code, as a shell would."""
    os.set_inheritable(lifeline, False)
    _process_control(_SET_CHILD_SUBREAPER, 1)
    woken = _wake_on_signals()
    guard, child = os.getpid(), os.fork()
    if child == 0:
        _become(command, guard)
    _let_go_of_streams()
    code = None
    while code is None:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready or _asked_to_end(woken):
            break
        code = _reap(child)[0]
    rest = _end_all(child, woken)
    code = rest if code is None else code
    return NOT_STARTED if code is None else code if code >= 0 else 128 - code


def _become(command: Sequence[str], guard: int) -> None:
    """Turns this process into the server, leading its own session and process group."""
    os.setsid()
    os.nice(NICENESS)
    _process_control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(NOT_STARTED)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the server would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))  # noqa: S606 - there is no shell on purpose
    except OSError as exc:
        os.write(2, f"{command[0]}: {exc.strerror}\n".encode())
        os._exit(NOT_STARTED)


def _wake_on_signals() -> int:
    """A descriptor that becomes readable once a child has ended or we are asked to end."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _take_note)
    return woken


def _take_note(number: int, frame: object) -> None:
    """Does nothing: the wakeup descriptor reports the signal."""


def _asked_to_end(woken: int) -> bool:
    return any(number != signal.SIGCHLD for number in os.read(woken, 64))


def _let_go_of_streams() -> None:
    """Leaves stdin, stdout and stderr to the server alone: closing them must signal its end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _reap(child: int) -> tuple[int | None, bool]:
    """Reaps ended children: returns the server's own exit code, and whether any child is left."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code, False
        if pid == 0:
            return code, True
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


def _end_all(child: int, woken: int) -> int | None:
    """Asks everything to end, then kills what is left; returns the server's exit code if it ends only now."""
    code, any_left = _reap(child)
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILL_S)):
        deadline = time.monotonic() + seconds
        if any_left:
            _signal_all(child, number)
        while any_left and (left := deadline - time.monotonic()) > 0:
            select.select([woken], [], [], min(left, LOOK_AGAIN_S))
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 64)
            ended, any_left = _reap(child)
            code = code if ended is None else ended
            if any_left and number == signal.SIGKILL:
                # Processes whose parent was just killed become our children only now.
                _signal_all(child, number)
    return code


def _signal_all(child: int, number: int) -> None:
    """Signals the server's process group, and every other child of ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, number)
    with contextlib.suppress(OSError):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for pid in children.split():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), number)


def _process_control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
