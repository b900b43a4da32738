"""Draws where a program's time goes: `python -m bench.flame piece` writes `flame-piece-after.svg`.

py-spy (`.venv/bin/pip install py-spy`) looks at the threads that run, from the outside, so that another
checkout is drawn as well: `python -m bench.flame piece --tree ../before --label before`.
"""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench import branches, context
from bench.cold import Start
from bench.databases import empty_database
from bench.flame_picture import Stacks, draw, weighted, without_waiting
from bench.servers import TREE, checkout_environment, family
from bench.sse import Streams
from bench.turns import ask, make_conversations, serve_with_speaker

FOLDER = TREE / "docs" / "performance"
SECONDS, RATE = 10, 400
COLD_STARTS, COLD_RATE = 3, 500
TURNS, PIECES_A_SECOND = 50, 20
BEGUN_AT_ONCE = 10


class Watching:
    """py-spy beside a process: one that runs, for some seconds, or one that it starts."""

    def __init__(self, *command: str, rate: int, environment: Mapping[str, str] | None = None) -> None:
        spy = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if spy is None:
            raise SystemExit("This needs py-spy: .venv/bin/pip install py-spy")
        self._folder = TemporaryDirectory(prefix="threadkeep-bench-")
        self._output = Path(self._folder.name, "stacks")
        options = ("--format", "raw", "--function", "--threads", "--rate", str(rate))
        self.process = subprocess.Popen(
            [spy, "record", *options, "--output", str(self._output), *command],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def is_going_on(self) -> bool:
        """Whether it still looks."""
        return self.process.poll() is None

    def stacks(self) -> Stacks:
        """What it has seen, once it has ended."""
        _, complaint = self.process.communicate()
        if not self._output.exists():
            raise SystemExit(f"py-spy could not look at the process:\n{complaint}")
        stacks: Stacks = Counter()
        for line in self._output.read_text().splitlines():
            frames, _, count = line.rpartition(" ")
            stacks[tuple(frames.split(";"))] += int(count)
        self._folder.cleanup()
        return without_waiting(stacks)


def watch(pid: int, meanwhile: Callable[[], object]) -> Stacks:
    """Looks at a process for the usual time, while something is done again and again.

    How often a thread was seen at work says less than the processor time it used: a thread that was stopped
    to be looked at seems to run for a moment, even if it only waits.
    """
    before = _thread_cpu(pid)
    watching = Watching("--pid", str(pid), "--duration", str(SECONDS), rate=RATE)
    while watching.is_going_on():
        meanwhile()
    return weighted(watching.stacks(), {tid: ns - before.get(tid, 0) for tid, ns in _thread_cpu(pid).items()})


def _thread_cpu(pid: int) -> dict[int, int]:
    """Nanoseconds of processor time by thread."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return {int(it.name): int((it / "schedstat").read_text().split()[0]) for it in threads}


# What is watched.


def piece(tree: Path) -> Stacks:
    """Turns that stream."""
    with empty_database("sqlite") as url, serve_with_speaker(url, tree=tree) as server:
        pieces = PIECES_A_SECOND * (SECONDS + 5)
        streams = Streams(server.port)
        streams.open(ask(it, pieces, PIECES_A_SECOND) for it in make_conversations(server, TURNS))
        streams.read_for(2)
        return watch(server.pid, lambda: streams.read_for(0.1))


def begin(tree: Path) -> Stacks:
    """Turns of one piece, some at once, again and again."""
    with empty_database("sqlite") as url, serve_with_speaker(url, tree=tree) as server:
        conversations = iter(make_conversations(server, 300 * SECONDS))

        def begin_some() -> None:
            streams = Streams(server.port)
            streams.open(ask(next(conversations), 1, 200) for _ in range(BEGUN_AT_ONCE))
            streams.read_all()

        return watch(server.pid, begin_some)


def build(tree: Path) -> Stacks:
    """Requests made of a long conversation, again and again."""
    return _watch_work("request", tree)


def branch(tree: Path) -> Stacks:
    """Another branch chosen, again and again."""
    return _watch_work("branch", tree)


def cold(tree: Path) -> Stacks:
    """Starts until the first answer."""
    return sum((_watch_start(tree) for _ in range(COLD_STARTS)), Counter[tuple[str, ...]]())


def _watch_work(name: str, tree: Path) -> Stacks:
    command = [sys.executable, "-m", "bench.flame", "--work", name]
    with subprocess.Popen(command, env=checkout_environment(tree), stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        worker.stdout.readline()  # it has begun
        try:
            return watch(worker.pid, lambda: time.sleep(0.1))
        finally:
            worker.kill()


def _watch_start(tree: Path) -> Stacks:
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        start = Start(tree, Path(folder))
        watching = Watching("--", *start.command, rate=COLD_RATE, environment=start.environment)
        start.wait_for_response()
        _, server = family(watching.process.pid)
        watching.process.send_signal(signal.SIGINT)  # it writes what it has seen
        try:
            return watching.stacks()
        finally:
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)


class Scene(NamedTuple):
    """Something to watch, and what the picture says about it."""

    title: str
    watch: Callable[[Path], Stacks]


SCENES: Mapping[str, Scene] = {
    "piece": Scene(f"A piece's way: {TURNS} turns, {PIECES_A_SECOND} pieces a second each, SQLite", piece),
    "begin": Scene(f"A turn's begin and end: turns of one piece, {BEGUN_AT_ONCE} at once, SQLite", begin),
    "request": Scene("Making a request of 200 messages with 400 tool calls", build),
    "branch": Scene("Choosing a branch, 10,000 messages after the fork, SQLite", branch),
    "cold": Scene("A cold start, until the first response", cold),
}
WORK: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "request": context.build_forever,
    "branch": branches.choose_forever,
}


def main(given: argparse.Namespace) -> None:
    """Draws one picture, or all."""
    if given.work:
        asyncio.run(WORK[given.work]())
    for name in given.what or SCENES:
        stacks = SCENES[name].watch(given.tree.resolve())
        path = FOLDER / f"flame-{name}-{given.label}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(draw(stacks, SCENES[name].title, given.label))
        print(f"{path.relative_to(TREE)}: {path.stat().st_size / 1000:.0f} kB")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench.flame", description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*SCENES, []], help="what to draw; everything by default")
    parser.add_argument("--tree", type=Path, default=TREE, help="the checkout that runs; this one by default")
    parser.add_argument("--label", default="after", help="the end of the picture's name (after)")
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(parse(sys.argv[1:]))
