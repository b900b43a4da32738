"""What a streamed piece costs with several workers, against one: `python -m bench.workers`.

Both servers run on one PostgreSQL, each on a database of its own, and take turns. Readers connect as they
come; the workers share the connections among themselves.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from tests.postgres import PostgresServer, free_port

from bench.client import Request, request
from bench.servers import START_S, UNHURRIED
from bench.sse import Stream, Streams

TURNS, RATE, REPLY_S, ROUNDS = 50, 20, 5, 5
BODY = b'{"content":"Is the penalty too high?"}'


class Tree:
    """A process and all that it has started."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._pid = pid

    def pids(self) -> list[int]:
        """All processes of the tree."""
        found = [self._pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    def cpu_s(self) -> list[float]:
        """The processor time of each of them so far (Linux)."""
        tasks = (Path(f"/proc/{pid}/task").iterdir() for pid in self.pids())
        return [sum(int((task / "schedstat").read_text().split()[0]) for task in it) / 1e9 for it in tasks]


@contextmanager
def threadkeep_serve(settings: Mapping[str, str], *arguments: str) -> Generator[Tree]:
    """`threadkeep serve` as an operator starts it, for as long as the block lasts."""
    port = free_port()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("THREADKEEP_")}
    paths = os.pathsep.join(map(os.path.abspath, sys.path))
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "threadkeep", "serve", "--port", str(port), *arguments],
            env={**ours, "PYTHONPATH": paths, "THREADKEEP_LOG_LEVEL": "warning", **UNHURRIED, **settings},
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_until_ready(port, process)
            yield Tree(port, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def wait_until_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until the server responds."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("a server did not start")


@contextmanager
def paced_model(pieces: int, rate: int) -> Generator[dict[str, str]]:
    """The settings of a model that gives every reply in so many pieces."""
    options = ("--time", "--pieces", str(pieces), "--rate", str(rate))
    command = [sys.executable, "-m", "threadkeep.testing", *options]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout
        yield {
            "THREADKEEP_GATEWAY": "anthropic",
            "THREADKEEP_GATEWAY_URL": model.stdout.readline().strip(),
            "THREADKEEP_GATEWAY_API_KEY": "none",
            "THREADKEEP_MODEL": "scripted",
        }
    finally:
        model.terminate()
        model.wait()


def questions(port: int, count: int) -> list[Request]:
    """The first messages of so many conversations."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
        agent = client.get("/api/agents").json()["items"][0]["id"]
        made = [client.post(f"/api/agents/{agent}/conversations").json()["id"] for _ in range(count)]
        for conversation in made:  # nobody asks the model for titles
            client.patch(f"/api/conversations/{conversation}", json={"title": "Bench"})
    return [request("POST", f"/api/conversations/{it}/messages", body=BODY) for it in made]


def measure(
    counts: Sequence[int] = (1, 2), turns: int = TURNS, rate: int = RATE, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Microseconds of CPU a piece by the number of workers, and the ratios within each round to the first."""
    pieces = rate * REPLY_S
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer(durable=True))
        model = stack.enter_context(paced_model(pieces, rate))
        servers: dict[int, Tree] = {}
        for count in counts:
            url = postgres.create_database(f"workers_{count}")
            settings = {
                **model,
                "THREADKEEP_DATABASE_URL": url,
                "THREADKEEP_DATABASE_POOL_SIZE": str(8 * count),
            }
            servers[count] = stack.enter_context(threadkeep_serve(settings, "--workers", str(count)))
        asked = {count: questions(server.port, turns) for count, server in servers.items()}
        costs: dict[int, list[float]] = {count: [] for count in counts}
        lags: dict[int, list[float]] = {count: [] for count in counts}
        shares: list[list[float]] = []
        for round_ in range(rounds + 1):
            for count in counts if round_ % 2 else reversed(counts):
                before = servers[count].cpu_s()
                opened = _answer(servers[count].port, asked[count])
                used = [b - a for a, b in zip(before, servers[count].cpu_s(), strict=True)]
                if not round_:  # warms up
                    continue
                costs[count].append(sum(used) * 1e6 / turns / pieces)
                lags[count].append(median(lag for stream in opened for lag in stream.lags_ms))
                if count > 1:
                    shares.append([round(it / sum(used[1:]), 2) for it in used[1:]])
    first = costs[counts[0]]
    return {
        "turns": turns,
        "pieces_per_s": rate,
        "cpu_us_per_piece": {count: median(costs[count]) for count in counts},
        "ratio": {
            count: median(mine / one for mine, one in zip(costs[count], first, strict=True))
            for count in counts
        },
        "delay_p50_ms": {count: median(lags[count]) for count in counts},
        "shares": shares,
    }


def _answer(port: int, asked: Sequence[Request]) -> list[Stream]:
    streams = Streams(port)
    opened = streams.open(asked)
    streams.read_all()
    return opened


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m bench.workers", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    print(json.dumps(measure(turns=given.turns, rate=given.rate, rounds=given.rounds), indent=2))
