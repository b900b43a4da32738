"""Prints how long the turns of healthy agents take beside a server of tools that is sick.

    python -m bench.tools            four minutes
    python -m bench.tools --quick    one

Beside means: in the same Threadkeep somebody else, in a process of their own, has a turn every quarter of a
second in which their server is used. Blocks in which that server is healthy and blocks in which it is sick
take turns, so that both see the same noise of the machine; the ratio is that of their P99s.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from tests.mcp.running import CHAOS

from bench import results
from bench.servers import serve
from bench.somebody import EVERY_S, Talker
from bench.table import Aim
from bench.ticking import STALL_PATH

AIM = Aim("≤", 1.1)
HEADINGS = ("beside a server that", "P50 ms", "P99 ms", "longest stall ms", "P99 ratio", "aim", "")


@dataclass(frozen=True, slots=True)
class Sickness:
    """How a server misbehaves, and what is asked of it."""

    name: str
    mode: str = "good"
    use: str = 'echo {"text": "hello"}'


SICKNESSES = (
    Sickness("never answers `initialize`", "silent"),
    Sickness("takes 30 s to start", "slow30"),
    Sickness("exits at once", "exit"),
    Sickness("hangs in a call", use="hang {}"),
    Sickness("crashes in a call", use="crash {}"),
    Sickness("changes its tools", use="change {}"),
    Sickness("writes garbage to stdout", "noise"),
    Sickness("floods us with messages", "chatty"),
    Sickness("floods stderr", "stderr"),
    Sickness("returns 100 MB", use='big {"bytes": 100000000}'),
    Sickness("returns 80,000 rows", use='rows {"rows": 80000}'),
)
WIDTHS = (max(len(it.name) for it in SICKNESSES), *map(len, HEADINGS[1:-2]), len(str(AIM)), len("miss"))


@dataclass(slots=True)
class Blocks:
    """What was measured beside one server."""

    milliseconds: list[float] = field(default_factory=list[float])
    stall_ms: float = 0.0

    @property
    def p50(self) -> float:
        """The median turn."""
        return self._hundredths[49]

    @property
    def p99(self) -> float:
        """The slowest turn but one in a hundred."""
        return self._hundredths[98]

    @property
    def _hundredths(self) -> list[float]:
        return quantiles(self.milliseconds, n=100, method="inclusive")


class Bench:
    """A Threadkeep, a person whose turns are timed, and somebody whose server is sick."""

    def __init__(self, port: int, turns: int) -> None:
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)
        self._talker = Talker(port)
        self._somebody = subprocess.Popen(
            [sys.executable, "-m", "bench.somebody", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._turns = turns
        self._healthy = self._conversation(self._agent())
        self.measure(Sickness("is healthy"), rounds=1)  # the first use of a server loads the MCP SDK

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()
        self._talker.close()
        self._somebody.terminate()
        self._somebody.communicate()

    def measure(self, sickness: Sickness, rounds: int) -> tuple[Blocks, Blocks]:
        """Turns beside the server while it is healthy, and while it is sick."""
        agents = [self._agent(Sickness("is healthy")), self._agent(sickness)]
        both = Blocks(), Blocks()
        for _ in range(rounds):
            for agent, blocks, it in zip(agents, both, (Sickness(""), sickness), strict=True):
                self._disable(agent, disabled=False)
                with self._beside(self._conversation(agent), it):
                    self._block(blocks)
                self._disable(agent, disabled=True)
        return both

    def _block(self, blocks: Blocks) -> None:
        time.sleep(2 * EVERY_S)  # the server has been started, or is being started
        self._client.get(STALL_PATH)
        for _ in range(self._turns):
            begun = time.perf_counter()
            self._talker.ask(self._healthy, "Is the penalty too high?")
            blocks.milliseconds.append((time.perf_counter() - begun) * 1000)
        blocks.stall_ms = max(blocks.stall_ms, float(self._client.get(STALL_PATH).text))

    @contextmanager
    def _beside(self, conversation: str, sickness: Sickness) -> Generator[None]:
        """Has somebody else use their server again and again."""
        self._tell(f"{conversation}\tuse chaos__{sickness.use}")
        try:
            yield
        finally:
            self._tell("")
            assert self._somebody.stdout
            assert self._somebody.stdout.readline() == "\n", "somebody has given up"

    def _tell(self, line: str) -> None:
        assert self._somebody.stdin
        print(line, file=self._somebody.stdin, flush=True)

    def _agent(self, sickness: Sickness | None = None) -> str:
        args = ["-I", "-S", str(CHAOS), sickness.mode if sickness else ""]
        server = {"command": "python", "args": args, "timeoutS": 2, "disabled": True}
        settings: dict[str, Any] = {"mcpServers": {"chaos": server} if sickness else {}}
        answer = self._client.post("/api/agents", json={"name": "Advisor", "settings": settings})
        return answer.json()["id"]

    def _disable(self, agent: str, *, disabled: bool) -> None:
        body = {"settings": {"mcpServers": {"chaos": {"disabled": disabled}}}}
        answer = self._client.patch(f"/api/agents/{agent}", json=body)
        assert answer.status_code == 200, answer.text

    def _conversation(self, agent: str) -> str:
        path = f"/api/agents/{agent}/conversations"
        return self._client.post(path, json={"title": "Tools"}).json()["id"]


@contextmanager
def serving(turns: int) -> Generator[Bench]:
    """Threadkeep on SQLite, with a model that uses tools as it is told."""
    model = subprocess.Popen([sys.executable, "-m", "bench.obedient"], stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout
        with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
            settings = {
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "THREADKEEP_DATA": folder,
                "THREADKEEP_GATEWAY": "openai",
                "THREADKEEP_GATEWAY_URL": model.stdout.readline().strip(),
                "THREADKEEP_GATEWAY_API_KEY": "none",
                "THREADKEEP_MODEL": "scripted",
                "THREADKEEP_MCP_ALLOWED_COMMANDS": "python",
                "THREADKEEP_MCP_CONNECT_BUDGET_S": "2",
            }
            with serve("bench.ticking:create_app", settings) as server:
                bench = Bench(server.port, turns)
                try:
                    yield bench
                finally:
                    bench.close()
    finally:
        model.terminate()
        model.wait()


def main(arguments: argparse.Namespace) -> None:
    """Every sickness, one after the other; each line is printed as soon as it is known."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else the servers would be left behind
    turns, rounds = (50, 1) if arguments.quick else (150, 4)
    run = results.Run.now(is_quick=arguments.quick)
    print(f"{run}\n")
    _show(HEADINGS)
    lines: list[tuple[str, ...]] = []
    with serving(turns) as bench:
        for sickness in SICKNESSES:
            if arguments.only not in (None, sickness.mode, sickness.use.partition(" ")[0]):
                continue
            healthy, sick = bench.measure(sickness, rounds)
            ratio = sick.p99 / healthy.p99
            verdict = "ok" if AIM.is_met(ratio) else "miss"
            lines.append(("is healthy", *_figures(healthy), "", "", ""))
            lines.append((sickness.name, *_figures(sick), f"{ratio:.2f}", str(AIM), verdict))
            for line in lines[-2:]:
                _show(line)
    if arguments.save:
        results.save_texts("tools", "", HEADINGS, lines, run)


def _figures(blocks: Blocks) -> tuple[str, ...]:
    return f"{blocks.p50:.1f}", f"{blocks.p99:.1f}", f"{blocks.stall_ms:.1f}"


def _show(cells: Sequence[str]) -> None:
    first, *others = zip(cells, WIDTHS, strict=True)
    aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    print("  ".join(aligned).rstrip(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        "python -m bench.tools", description="Turns beside sick servers of tools."
    )
    parser.add_argument("--quick", action="store_true", help="one minute instead of four")
    parser.add_argument("--only", help="one sickness only, by its mode or tool, such as `stderr` or `big`")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/performance.md")
    main(parser.parse_args())
