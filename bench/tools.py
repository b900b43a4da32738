"""Prints how long the turns of healthy agents take beside a server of tools that is sick.

    python -m bench.tools

Beside means: in the same Threadkeep somebody else has a turn every quarter of a second in which their server
is used. Blocks in which that server is healthy and blocks in which it is sick take turns, so that both see
the same noise of the machine; the ratio is that of their P99s.
"""

import argparse
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from tests.mcp.running import CHAOS

from bench.servers import serve
from bench.table import Aim, render
from bench.ticking import STALL_PATH

AIM = Aim("≤", 1.1)
EVERY_S = 0.25
HEADINGS = ("beside a server that", "P50 ms", "P99 ms", "longest stall ms", "P99 ratio", "aim", "")
JSON = {"Accept": "application/json"}


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

    def __init__(self, url: str, turns: int) -> None:
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False)
        self._turns = turns
        self._healthy = self._conversation(self._agent())
        self.measure(Sickness("is healthy"), rounds=1)  # the first use of a server loads the MCP SDK

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

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
            self._ask(self._healthy, "Is the penalty too high?")
            blocks.milliseconds.append((time.perf_counter() - begun) * 1000)
        blocks.stall_ms = max(blocks.stall_ms, float(self._client.get(STALL_PATH).text))

    @contextmanager
    def _beside(self, conversation: str, sickness: Sickness) -> Generator[None]:
        """Has somebody else use their server again and again."""
        over = threading.Event()

        def use() -> None:
            while not over.wait(EVERY_S):
                self._ask(conversation, f"use chaos__{sickness.use}")

        with ThreadPoolExecutor(1) as somebody:
            using = somebody.submit(use)
            try:
                yield
            finally:
                over.set()
            using.result()

    def _ask(self, conversation: str, content: str) -> None:
        path = f"/api/conversations/{conversation}/messages?wait=true"
        answer = self._client.post(path, json={"content": content}, headers=JSON)
        assert answer.json().get("status") == "COMPLETED", answer.text

    def _agent(self, sickness: Sickness | None = None) -> str:
        args = ["-I", "-S", str(CHAOS), sickness.mode if sickness else ""]
        server = {"command": "python", "args": args, "timeoutS": 10, "disabled": True}
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
                bench = Bench(f"http://127.0.0.1:{server.port}", turns)
                yield bench
                bench.close()
    finally:
        model.terminate()
        model.wait()


def main(arguments: argparse.Namespace) -> None:
    """Every sickness, one after the other."""
    turns, rounds = (50, 1) if arguments.quick else (200, 4)
    lines: list[tuple[str, ...]] = []
    print(f"{platform.system()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    with serving(turns) as bench:
        for sickness in SICKNESSES:
            if arguments.only not in (None, sickness.mode, sickness.use.partition(" ")[0]):
                continue
            healthy, sick = bench.measure(sickness, rounds)
            ratio = sick.p99 / healthy.p99
            lines += [
                ("  is healthy", *_figures(healthy), "", "", ""),
                (
                    sickness.name,
                    *_figures(sick),
                    f"{ratio:.2f}",
                    str(AIM),
                    "ok" if AIM.is_met(ratio) else "miss",
                ),
            ]
    print(f"\n{render(lines, HEADINGS, markdown=arguments.markdown)}")


def _figures(blocks: Blocks) -> tuple[str, ...]:
    return f"{blocks.p50:.1f}", f"{blocks.p99:.1f}", f"{blocks.stall_ms:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        "python -m bench.tools", description="Turns beside sick servers of tools."
    )
    parser.add_argument("--quick", action="store_true", help="a minute instead of six")
    parser.add_argument("--only", help="one sickness only, by its mode or tool, such as `stderr` or `big`")
    parser.add_argument("--markdown", action="store_true", help="print a table for a document")
    main(parser.parse_args())
