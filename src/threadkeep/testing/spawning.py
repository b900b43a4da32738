"""A program that starts Threadkeeps, each in a process of its own, which ends itself at a commit of its turn.

    python -m threadkeep.testing.spawning

It loads everything once, and forks for each order: a Threadkeep is there in a fraction of a second. All of
them end with it, and it ends with the process that started it.
"""

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec

from threadkeep.agents import Agent, AgentsNotLoaded
from threadkeep.agents.loading import find
from threadkeep.bootstrap import create_app
from threadkeep.http.server.connection import ConnectionLimits
from threadkeep.http.server.server import listen, serve
from threadkeep.log.writer import STORES_EACH
from threadkeep.settings import Settings
from threadkeep.testing.agents import Effects, Fakes
from threadkeep.testing.commits import Commits, Moment, Position
from threadkeep.testing.diaries import DiaryFile
from threadkeep.testing.listening import HOST

LOG = "log"
"""What a process says on its way, a file in its folder."""


class Loading(msgspec.Struct, frozen=True):
    """What to load, each as `module:name`: agents, fakes of steps, and what else is loaded on first use."""

    agents: Sequence[str]
    fakes: Mapping[str, str]
    others: Sequence[str] = ()
    beside: Sequence[str] = ()
    """Agents that every process has, besides its own."""


class Ending(msgspec.Struct, frozen=True):
    """The signal that a process sends itself at a position."""

    moment: Moment
    commit: str
    signal: int = signal.SIGKILL


class Order(msgspec.Struct, frozen=True):
    """A Threadkeep to start."""

    number: int
    folder: str
    diary: str
    settings: dict[str, Any]
    agent: int
    ending: Ending | None = None


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has become of an order: its process, where it listens, and how it ended; or of loading."""

    number: int = 0
    pid: int | None = None
    url: str | None = None
    status: int | None = None
    problem: str | None = None


_encode = msgspec.json.Encoder().encode


class Spawner:
    """Forks a Threadkeep for each order."""

    def __init__(self, reports: int) -> None:
        self._reports = reports
        self._numbers: dict[int, int] = {}
        """The orders of the processes that run."""
        self._agents: Sequence[Agent] = ()
        self._beside: Sequence[Agent] = ()
        self._fakes: Fakes = {}
        # Nobody writes: whoever reads learns that this process has ended, however it did.
        self._lifeline, self._end_of_it = os.pipe()

    def run(self) -> None:
        """Follows orders until there are no more."""
        lines = iter(sys.stdin.buffer.readline, b"")
        try:
            self._load(msgspec.json.decode(next(lines), type=Loading))
        except AgentsNotLoaded as exc:
            self._report(Report(problem=str(exc)))
            return
        self._report(Report())
        signal.signal(signal.SIGCHLD, self._reap)
        try:
            for line in lines:
                self._follow(msgspec.json.decode(line, type=Order))
        finally:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for pid in self._numbers:
                os.kill(pid, signal.SIGKILL)

    def _load(self, loading: Loading) -> None:
        self._agents = [find(it) for it in loading.agents]
        self._beside = [find(it) for it in loading.beside]
        self._fakes = {name: find(it) for name, it in loading.fakes.items()}
        for it in loading.others:
            find(it)

    def _follow(self, order: Order) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until its number is known
        pid = os.fork()
        if pid == 0:
            self._live(order)
        self._numbers[pid] = order.number
        self._report(Report(order.number, pid=pid))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def _reap(self, number: int, frame: FrameType | None) -> None:
        # Another signal may interrupt this one: each process is reaped, and reported, once.
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if (order := self._numbers.pop(pid, None)) is not None:
                    self._report(Report(order, status=os.waitstatus_to_exitcode(status)))

    def _report(self, report: Report) -> None:
        os.write(self._reports, _encode(report) + b"\n")

    def _live(self, order: Order) -> NoReturn:
        """The new process, to its end."""
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.close(self._end_of_it)
            os.chdir(order.folder)
            _redirect(Path(order.folder, LOG))
            self._serve(order)
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the process ends here
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def _serve(self, order: Order) -> None:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, force=True)
        diary = DiaryFile(Path(order.diary))
        _watch(diary, order.ending)
        settings = Settings.load({}, Path(os.devnull), **order.settings)
        effects = Effects(self._fakes, diary)
        app = create_app(settings, agents=[*map(effects.of, (self._agents[order.agent], *self._beside))])
        with listen(HOST, 0) as listener:

            def ready() -> None:
                asyncio.get_running_loop().add_reader(self._lifeline, os._exit, 1)
                url = f"http://{HOST}:{listener.getsockname()[1]}"
                self._report(Report(order.number, url=url))

            limits, grace_s = ConnectionLimits(), settings.shutdown_grace_s
            serve(app, listener, when_ready=ready, grace_s=grace_s, limits=limits)


def _watch(diary: DiaryFile, ending: Ending | None) -> None:
    at = None if ending is None else Position(ending.moment, ending.commit)
    number = signal.SIGKILL if ending is None else ending.signal
    Commits(diary, at, partial(os.kill, os.getpid(), number)).watch_all()
    STORES_EACH.set(True)


def _redirect(log: Path) -> None:
    """What the process prints goes into a file; the streams of its parent are for orders and reports."""
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(written, 1)
    os.dup2(written, 2)


def main() -> None:
    """Keeps the standard output for reports; what the loaded modules print is an error stream's."""
    reports = os.dup(1)
    os.dup2(2, 1)
    Spawner(reports).run()


if __name__ == "__main__":
    main()
