"""Kills each framework's shop at every commit, on both databases, and writes down what became of it.

python -m tests.frameworks [pydantic_ai openai_agents langgraph]
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import monotonic

from tests.conftest import TEMPLATE, migrate
from tests.faults.killing import killed_courses
from tests.frameworks.shop import FAKES, REFUND
from tests.frameworks.suite import problem_of
from tests.postgres import PostgresServer
from threadkeep.agents import Agent
from threadkeep.testing import ScriptedModel
from threadkeep.testing.commits import Position
from threadkeep.testing.crashes import Courses, positions

RECORD = Path(__file__).parents[2] / "docs" / "crashes" / "frameworks.md"
PACKAGES = {
    "pydantic_ai": "pydantic-ai-slim",
    "openai_agents": "openai-agents",
    "langgraph": "langgraph",
}
AT_ONCE = 4
HEAD = """# Agents of frameworks, killed at every commit

The same shop, written as the users of each framework write it (`tests/frameworks`): two parallel reads, a
write, and a refund that needs an approval. Its process is killed before and after every commit of the turn,
and another one continues. `alike`: the turn ended as without a kill. `unknown`: a write was cut off; it was
not repeated, and the model read that nobody knows whether it took effect.
"""


@dataclass(frozen=True)
class Killed:
    """What became of one turn."""

    framework: str
    database: str
    position: Position
    outcome: str
    problem: str | None


async def kill_everywhere(framework: str, agent: Agent, server: PostgresServer) -> list[Killed]:
    """Kills one shop everywhere."""
    found: list[Killed] = []
    for database, postgres in (("SQLite", None), ("PostgreSQL", server)):
        async with killed_courses(agent, REFUND, ["allow"], FAKES, postgres, model=ScriptedModel) as (
            courses,
            _,
        ):
            await courses.whole()
            found += await _killed(framework, database, courses)
    return found


async def _killed(framework: str, database: str, courses: Courses) -> list[Killed]:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(commit: int, at: Position) -> Killed:
        async with free:
            try:
                crash = await courses.crashed(commit, at, courses.agent)
                again = f", {', '.join(crash.extra_calls)} again" if crash.extra_calls else ""
                killed = Killed(framework, database, at, crash.outcome + again, problem_of(crash))
            except Exception as exc:
                killed = Killed(framework, database, at, "", f"{type(exc).__name__}: {exc}")
        print(f"{framework}, {database}, {at}: {killed.problem or killed.outcome}", flush=True)
        return killed

    return await asyncio.gather(*(one(commit, at) for commit, at in positions(courses.commits)))


def page(found: Sequence[Killed], seconds: float) -> str:
    """The record: a table for each framework."""
    date = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    wrong = sum(it.problem is not None for it in found)
    parts = [f"{date}: {len(found)} kills in {seconds / 60:.0f} minutes; {wrong} were felt."]
    for framework in dict.fromkeys(it.framework for it in found):
        package = PACKAGES[framework]
        cells: dict[str, dict[str, str]] = {}
        for it in found:
            if it.framework == framework:
                cell = f"**{it.problem}**" if it.problem else it.outcome
                cells.setdefault(str(it.position), {})[it.database] = cell
        rows = (
            f"| {at} | {it.get('SQLite', '–')} | {it.get('PostgreSQL', '–')} |" for at, it in cells.items()
        )
        head = "| position | SQLite | PostgreSQL |\n| --- | --- | --- |"
        parts.append(f"## {package} {version(package)}\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def main(names: Sequence[str]) -> int:
    """Kills the shops of these frameworks, or of all; writes the record if they were all."""
    began = monotonic()
    shops: dict[str, Agent] = {
        name: import_module(f"tests.frameworks.{name}_shop").served for name in names or PACKAGES
    }

    async def all_of(server: PostgresServer) -> list[Killed]:
        return [it for name, agent in shops.items() for it in await kill_everywhere(name, agent, server)]

    with PostgresServer() as server:
        asyncio.run(migrate(server.create_database(TEMPLATE)))
        found = asyncio.run(all_of(server))
    if not names:
        RECORD.write_text(f"{HEAD}\n{page(found, monotonic() - began)}", encoding="utf-8")
    wrong = [it for it in found if it.problem is not None]
    print(f"{len(found)} kills, {len(wrong)} of them felt")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
