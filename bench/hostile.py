"""Whether one user notices another who attacks: `/healthz`, a read and a small write, quiet and during each.

    python -m bench.hostile [--quick] [--database sqlite|postgres] [--only NAME]…

A server as an operator runs it, attackers in processes of their own, and a user who asks for three things
every 50 ms: `/healthz` (how long the event loop stalls), a page of messages, and a small write (how long
writes of others wait). Each attack is measured right after a quiet stretch, so that both see the same
machine.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.postgres import PostgresServer
from tests.serving import SOURCE, Server

from bench import results
from bench.attacker import SECRET, Caller
from bench.attacks import ATTACKS
from bench.hostile_table import SOME, WHOLE, name_of
from bench.servers import TREE
from bench.table import render
from threadkeep.testing import ScriptedModel

HEADINGS = ("during", "asks", "quiet P50 ms", "quiet most ms", "P50 ms", "P99 ms", "most ms")
MESSAGES = 40
EVERY_S = 0.05
WARM_S = 1

Times = dict[str, list[float]]


def measure(port: int, conversation: str, seconds: float) -> Times:
    """Milliseconds of each thing that a user asks for in this time."""
    bob = Caller(port, "bob")
    asked = {
        "/healthz": lambda: bob.call("GET", "/healthz"),
        "a read": lambda: bob.call("GET", f"/api/conversations/{conversation}/messages?limit=20"),
        "a write": lambda: bob.call("PATCH", f"/api/conversations/{conversation}", {"title": "Mine"}),
    }
    times: Times = {name: [] for name in asked}
    until = time.monotonic() + seconds
    while (begun := time.monotonic()) < until:
        for name, ask in asked.items():
            since = time.perf_counter()
            status, _ = ask()
            times[name].append((time.perf_counter() - since) * 1000)
            assert status == 200, (name, status)
        time.sleep(max(0.0, begun + EVERY_S - time.monotonic()))
    return times


@contextmanager
def attacking(name: str, port: int, count: int) -> Generator[None]:
    """So many attackers while the block runs; whoever is measured comes first on the processors."""
    command = [sys.executable, "-m", "bench.attacks", name, str(port)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(5)) for _ in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout and process.stdout.readline() == b"begins\n"
        time.sleep(WARM_S)
        yield
        if any(process.poll() is not None for process in processes):
            raise RuntimeError(f"an attacker of {name!r} has ended by itself")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(name: str, port: int, conversation: str, seconds: float) -> list[tuple[str, ...]]:
    """The lines of an attack, each beside the quiet before it."""
    quiet = measure(port, conversation, seconds)
    with attacking(name, port, count=2):
        during = measure(port, conversation, seconds)
    return [(name, asked, *_figures(quiet[asked], during[asked])) for asked in during]


def _figures(quiet: list[float], during: list[float]) -> tuple[str, ...]:
    p99 = sorted(during)[int(len(during) * 0.99)]
    return tuple(f"{it:.1f}" for it in (median(quiet), max(quiet), median(during), p99, max(during)))


@contextmanager
def served(database: str) -> Generator[Server]:
    """`threadkeep serve` with sign-in on an empty database."""
    settings = {"jwt_secret": SECRET, "embedding_url": "off", "log_level": "error", "sharing": "anyone"}
    settings["agents"] = "bench.attacked_agents:AGENTS"
    start = partial(Server, source=os.pathsep.join((str(SOURCE), str(TREE))))
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder, ScriptedModel() as model:
        settings |= {"gateway": "openai", "gateway_url": model.url, "gateway_api_key": "sk-scripted"}
        if database == "sqlite":
            with start(Path(folder), **settings) as server:
                yield server
            return
        key = {"secret_key": SECRET}
        with (
            PostgresServer(durable=True) as postgres,
            start(
                Path(folder), database_url=postgres.create_database("hostile"), **settings, **key
            ) as server,
        ):
            yield server


def main(given: argparse.Namespace) -> None:
    """All attacks on each database."""
    seconds = 4.0 if given.quick else 8.0
    names = [name for name in ATTACKS if not given.only or name in given.only]
    for database in (given.database,) if given.database else ("sqlite", "postgres"):
        run = results.Run.now(is_quick=given.quick)  # a machine that does something else as well says little
        with served(database) as server:
            conversation = Caller(server.port, "bob").conversation(
                [f"question {it}" for it in range(MESSAGES)]
            )
            measure(server.port, conversation, 1)  # warm
            lines = [line for name in names for line in compare(name, server.port, conversation, seconds)]
            status = server.process.poll()
        print(f"\n{database} ({run})\n\n{render(lines, HEADINGS, markdown=False)}", flush=True)
        if given.save:
            _save(database, given.only and names, lines, run)
        assert status is None, f"the server ended with {status}"


def _save(
    database: str, attacks: Sequence[str] | None, lines: Sequence[tuple[str, ...]], run: results.Run
) -> None:
    """Keeps figures; those of a whole run replace all that were kept of its database."""
    if not attacks:
        results.forget(SOME, lambda name: name.startswith(f"{database}:"))
    results.save_texts(SOME if attacks else WHOLE, name_of(database, attacks), HEADINGS, lines, run)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        "python -m bench.hostile", description="A user's requests while another attacks."
    )
    parser.add_argument("--quick", action="store_true", help="half the time")
    parser.add_argument("--database", choices=("sqlite", "postgres"))
    parser.add_argument("--only", action="append", help="this attack; repeatable", choices=list(ATTACKS))
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/performance.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(parse(sys.argv[1:]))
