"""Threadkeeps in processes of their own, on this machine's loopback, for tests that kill them."""

import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

import msgspec

from threadkeep.agents import Agent
from threadkeep.testing.agents import Fakes
from threadkeep.testing.places import place_of
from threadkeep.testing.spawning import LOG, Ending, Loading, Order, Report
from threadkeep.testing.waiting import PATIENCE_S

TAIL_CHARACTERS = 2_000

_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode = msgspec.json.Decoder(Report).decode


class ProcessFailed(AssertionError):
    """A process didn't start, or ended by itself; with the last that it wrote."""


class Process:
    """A Threadkeep in a process of its own."""

    def __init__(self, folder: Path) -> None:
        loop = asyncio.get_running_loop()
        self.url = ""
        self.ended: asyncio.Future[int] = loop.create_future()
        """How it ended: an exit status, or the negative number of a signal."""
        self._pid: asyncio.Future[int] = loop.create_future()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._log = folder / LOG

    @property
    def pid(self) -> int:
        """What the system calls it, once it runs."""
        return self._pid.result()

    def take(self, report: Report) -> None:
        """Takes in what is reported of it."""
        if report.pid is not None:
            self._pid.set_result(report.pid)
        if report.url is not None:
            self.url = report.url
            self._ready.set_result(None)
        if report.status is not None and not self.ended.done():
            self.ended.set_result(report.status)

    async def until_ready(self) -> None:
        """Returns when it serves; ProcessFailed if it never does."""
        done, _ = await asyncio.wait(
            (self._ready, self.ended), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
        )
        if self._ready not in done:
            how = f"ended with status {self.ended.result()}" if done else f"didn't start in {PATIENCE_S} s"
            raise ProcessFailed(f"A process {how}.\n{_tail(self._log)}")

    async def crashed(self, number: signal.Signals | None) -> None:
        """Returns when it has ended by a signal, as it was to; ProcessFailed if it ended by itself."""
        status = await asyncio.shield(self.ended)
        if number is None or status not in (-number, 0 if number != signal.SIGKILL else -number):
            raise ProcessFailed(f"A process ended with status {status}.\n{_tail(self._log)}")

    async def send(self, number: signal.Signals) -> None:
        """Sends it a signal, unless it has ended."""
        await asyncio.wait((self._pid, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if not self.ended.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def end(self) -> None:
        """Kills it, and waits for that."""
        await self.send(signal.SIGKILL)
        await asyncio.wait((self.ended,))


class Processes:
    """Starts Threadkeeps with these agents, and ends all that are left."""

    def __init__(
        self,
        agents: Sequence[Agent],
        fakes: Fakes,
        others: Sequence[str] = (),
        beside: Sequence[Agent] = (),
    ) -> None:
        self._agents = list(agents)
        self._loading = Loading(
            [place_of(it, f"The agent `{it.key}`") for it in agents],
            {name: place_of(it, f"The fake of `{name}`") for name, it in fakes.items()},
            others,
            [place_of(it, f"The agent `{it.key}`") for it in beside],
        )
        self._numbers = count(1)
        self._started: dict[int, Process] = {}
        self._closing = AsyncExitStack()
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadkeep-"))
            self._said = Path(folder) / LOG
            with self._said.open("wb") as said:
                self._spawner = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "threadkeep.testing.spawning"),
                    env={**os.environ, "PYTHONPATH": _path()},
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=said,
                )
            stack.push_async_callback(self._end)
            self._write(self._loading)
            problem = await self._read()
            if problem is None or problem.problem is not None:
                raise ProcessFailed((problem and problem.problem) or _tail(self._said))
            self._listening = asyncio.create_task(self._listen())
            self._closing = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    @asynccontextmanager
    async def running(
        self,
        agent: Agent,
        folder: Path,
        settings: Mapping[str, Any],
        diary: Path,
        ending: Ending | None = None,
    ) -> AsyncGenerator[Process]:
        """A process while the block runs; it may end itself before."""
        if self._listening is None or self._listening.done():
            raise ProcessFailed(f"The process that starts the others has ended.\n{_tail(self._said)}")
        number, process = next(self._numbers), Process(folder)
        self._started[number] = process
        at = next(at for at, it in enumerate(self._agents) if it is agent)
        self._write(Order(number, str(folder), str(diary), dict(settings), at, ending))
        try:
            await process.until_ready()
            yield process
        finally:
            await process.end()

    def _write(self, order: Loading | Order) -> None:
        assert self._spawner.stdin
        self._spawner.stdin.write(_encode(order) + b"\n")

    async def _read(self) -> Report | None:
        assert self._spawner.stdout
        line = await self._spawner.stdout.readline()
        return _decode(line) if line else None

    async def _listen(self) -> None:
        while (report := await self._read()) is not None:
            self._started[report.number].take(report)
        for number, process in self._started.items():
            process.take(Report(number, status=1))  # it ends with the one that started it

    async def _end(self) -> None:
        """Those that are left end with the process that has started them."""
        assert self._spawner.stdin
        self._spawner.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._spawner.wait()
        except TimeoutError:
            self._spawner.kill()
            await self._spawner.wait()
        if self._listening is not None:
            await self._listening


def _path() -> str:
    """Where the other process looks for modules: as this one does."""
    return os.pathsep.join(it or str(Path.cwd()) for it in sys.path)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-TAIL_CHARACTERS:] if log.exists() else ""
