"""Kills each framework's shop at every commit of a visit, on both databases, and records what became of it.

    python -m tests.frameworks [--continue] [pydantic_ai openai_agents langgraph]

This takes long; what was stopped goes on with `--continue`, if the code is still the same.
"""

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests.conftest import TEMPLATE, migrate
from tests.faults.killing import killed_courses
from tests.frameworks.shop import FAKES, REFUND
from tests.frameworks.suite import problem_of, words
from tests.frameworks.visit import ANSWERS, SAID, Visit
from tests.postgres import PostgresServer
from threadkeep.agents import Agent
from threadkeep.testing import ScriptedModel
from threadkeep.testing.commits import Position
from threadkeep.testing.crashes import Courses, positions

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "crashes" / "frameworks.md"
KNOWN = ROOT / "build" / "frameworks.jsonl"
"""What has become of the visits so far."""
PACKAGES = {
    "pydantic_ai": "pydantic-ai-slim",
    "openai_agents": "openai-agents",
    "langgraph": "langgraph",
}
AT_ONCE = 2
WAIT_S = 300.0
"""On a machine that is busy with killing, a visit takes long."""


@dataclass(frozen=True)
class Killed:
    """What became of one visit."""

    framework: str
    database: str
    position: Position
    outcome: str
    problem: str | None

    @property
    def cell(self) -> str:
        """It in the table."""
        return f"**{self.problem}**" if self.problem else self.outcome


def known() -> list[Killed]:
    """What is already known."""
    lines = KNOWN.read_bytes().splitlines() if KNOWN.exists() else ()
    return [msgspec.json.decode(it, type=Killed) for it in lines]


async def kill_everywhere(framework: str, agent: Agent, server: PostgresServer) -> list[Killed]:
    """Kills one shop everywhere."""
    found: list[Killed] = []
    for database, postgres in (("SQLite", None), ("PostgreSQL", server)):
        async with killed_courses(
            agent, REFUND, ANSWERS, FAKES, postgres, model=ScriptedModel, course_of=Visit, wait_s=WAIT_S
        ) as (courses, _):
            whole = await courses.whole()
            assert words(whole.text) == SAID, whole
            found += await _killed(framework, database, courses)
    return found


async def _killed(framework: str, database: str, courses: Courses) -> list[Killed]:
    free = asyncio.Semaphore(AT_ONCE)
    earlier = {it.position: it for it in known() if (it.framework, it.database) == (framework, database)}

    async def one(commit: int, at: Position) -> Killed:
        if at in earlier:
            return earlier[at]
        async with free:
            try:
                crash = await courses.crashed(commit, at, courses.agent)
                again = f", {', '.join(crash.extra_calls)} again" if crash.extra_calls else ""
                killed = Killed(framework, database, at, crash.outcome + again, problem_of(crash))
            except Exception as exc:
                killed = Killed(framework, database, at, "", f"{type(exc).__name__}: {exc}")
        with KNOWN.open("ab") as file:
            file.write(msgspec.json.encode(killed) + b"\n")
        print(f"{framework}, {database}, {at}: {killed.cell}", flush=True)
        return killed

    return await asyncio.gather(*(one(commit, at) for commit, at in positions(courses.commits)))


def section(framework: str, found: Sequence[Killed]) -> str:
    """What the record says of a framework."""
    date = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    wrong = sum(it.problem is not None for it in found)
    cells: dict[str, dict[str, str]] = {}
    for it in found:
        cells.setdefault(str(it.position), {})[it.database] = it.cell
    rows = (f"| {at} | {it.get('SQLite', '–')} | {it.get('PostgreSQL', '–')} |" for at, it in cells.items())
    package = PACKAGES[framework]
    return "\n".join(
        (
            f"## {package} {version(package)}\n",
            f"{date}: {len(found)} kills; {wrong} were felt.\n",
            "| position | SQLite | PostgreSQL |\n| --- | --- | --- |",
            *rows,
            "",
        )
    )


def write_down(framework: str, new: str) -> None:
    """Puts a framework's section into the record, in place of its last one."""
    head, *sections = re.split(r"(?m)^(?=## )", RECORD.read_text(encoding="utf-8"))
    by_package = {it.split()[1]: it for it in sections} | {PACKAGES[framework]: new}
    kept = (by_package[it].strip() for it in PACKAGES.values() if it in by_package)
    RECORD.write_text("\n\n".join((head.strip(), *kept)) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Kills the shops of these frameworks, or of all."""
    felt, names = 0, [it for it in arguments if it != "--continue"]
    KNOWN.parent.mkdir(exist_ok=True)
    if "--continue" not in arguments:
        KNOWN.unlink(missing_ok=True)
    with PostgresServer() as server:
        asyncio.run(migrate(server.create_database(TEMPLATE)))
        for name in names or PACKAGES:
            agent: Agent = import_module(f"tests.frameworks.{name}_shop").served
            found = asyncio.run(kill_everywhere(name, agent, server))
            write_down(name, section(name, found))
            wrong = sum(it.problem is not None for it in found)
            print(f"{name}: {len(found)} kills, {wrong} of them felt", flush=True)
            felt += wrong
    return 1 if felt else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
