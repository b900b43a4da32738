"""The agent of examples/orders, interrupted at every commit of its turn; writes down what became of it.

    python -m tests.faults.crash_record

SIGKILL and SIGTERM on SQLite and on PostgreSQL, SIGSTOP for longer than the lease on PostgreSQL, each before
and after every commit; and four losses in a row. Every process is real, and leases expire in their time.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from tests.conftest import TEMPLATE, migrate
from tests.faults.killing import kind_model, order_courses
from tests.postgres import PostgresServer
from threadkeep.client import Client
from threadkeep.domain.events import TurnEvent, TurnResumed
from threadkeep.testing.agents import AgentRun, Course, Effects
from threadkeep.testing.commits import Position, has_reached
from threadkeep.testing.crashes import DIARY, Courses, Killed, Life, positions
from threadkeep.testing.diaries import DiaryFile
from threadkeep.testing.processes import Processes
from threadkeep.testing.waiting import until

RECORD = Path(__file__).parents[2] / "docs" / "crashes" / "orders.md"
AT_ONCE = 4
"""How many turns at a time; most of them wait for a lease to expire."""
SIGNALS = {
    "SQLite": (signal.SIGKILL, signal.SIGTERM),
    "PostgreSQL": (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP),
}
LOSSES = 4
BEGINS, ENDS = "<!-- record -->\n", "<!-- /record -->\n"


@dataclass(frozen=True)
class Interrupted:
    """What has become of one turn."""

    position: Position
    database: str
    number: signal.Signals
    outcome: str
    problem: str | None = None

    @property
    def cell(self) -> str:
        """It in the table."""
        return f"**{self.problem}**" if self.problem else self.outcome


@dataclass(frozen=True)
class Scene:
    """The turn on one database, with the processes that run it."""

    database: str
    courses: Courses
    processes: Processes

    async def interrupt(self, commit: int, at: Position, number: signal.Signals) -> Interrupted:
        """Runs the turn with a signal at a position."""
        async with self.courses.ground() as (folder, settings), AsyncExitStack() as stack:
            effects = Effects(self.courses.fakes, DiaryFile(folder / DIARY))
            course, model = self.courses.course(effects), stack.enter_context(kind_model())
            lives, agent = Killed(self.processes, number), self.courses.agent
            first = await stack.enter_async_context(lives.live(agent, folder, settings, model, at))
            begin_second = Killed(self.processes).live(agent, folder, settings, model)
            second = None
            if self.database == "PostgreSQL":
                second = await stack.enter_async_context(begin_second)
            done = await _until_interrupted(first, course, self.courses.text, at, folder, number)
            if number != signal.SIGTERM:  # such a process hands its turn off
                await self.courses.lose(settings)
            second = second or await stack.enter_async_context(begin_second)
            run = await course.run(second.client, self.courses.text)
            crash = self.courses.compared(commit, at, agent, run, effects)
            problem = crash.problem or await _wrong_attempts(second.client, course, number)
            if number == signal.SIGSTOP:
                problem = problem or await _wake(first, second.client, course, effects)
            outcome = "ended" if done else crash.outcome
            extra = f", extra call of {', '.join(crash.extra_calls)}" if crash.extra_calls else ""
            return Interrupted(at, self.database, number, outcome + extra, problem)

    async def lose(self) -> str:
        """Loses the turn's process four times in a row."""
        async with self.courses.ground() as (folder, settings), AsyncExitStack() as stack:
            model, agent = stack.enter_context(kind_model()), self.courses.agent
            course = self.courses.course(Effects(self.courses.fakes, DiaryFile(folder / DIARY)))
            at = Position("after", "step_end find_order")
            for _ in range(LOSSES):
                async with Killed(self.processes).live(agent, folder, settings, model, at) as life:
                    await _until_interrupted(life, course, self.courses.text, at, folder, signal.SIGKILL)
                at = Position("after", "turn_resumed")
            async with Killed(self.processes).live(agent, folder, settings, model) as life:
                run = await course.run(life.client, self.courses.text)
                attempts = await _attempts(life.client, course)
        code = run.error.code if run.error else "no error"
        return (
            f"{self.database}, {LOSSES} losses in a row without progress, with the takeovers {attempts}: "
            f"the turn ended as {run.status} `{code}`."
        )


async def _until_interrupted(
    life: Life, course: Course, text: str, at: Position, folder: Path, number: signal.Signals
) -> bool:
    """Runs the turn until its process has the signal; whether it has ended before."""

    async def reached() -> None:
        diary = DiaryFile(folder / DIARY)
        await until(lambda: has_reached(diary, at))

    running = asyncio.create_task(course.run(life.client, text))
    ending = asyncio.create_task(reached() if number == signal.SIGSTOP else _ended(life))
    done, _ = await asyncio.wait((running, ending), return_when=asyncio.FIRST_COMPLETED)
    if running in done and ending not in done:  # it ends, or its client has heard of that first
        await asyncio.wait((ending,))
    for task in (running, ending):
        task.cancel()
    ended = await asyncio.gather(running, ending, return_exceptions=True)
    return isinstance(ended[0], AgentRun)


async def _ended(life: Life) -> None:
    await life.crashed()


async def _events(client: Client, course: Course) -> list[TurnEvent]:
    return [it async for it in client.follow(course.turn_id)]


async def _attempts(client: Client, course: Course) -> list[int]:
    return [it.body.attempt for it in await _events(client, course) if isinstance(it.body, TurnResumed)]


async def _wrong_attempts(client: Client, course: Course, number: signal.Signals) -> str | None:
    """A turn that was handed off has lost no attempt."""
    attempts = await _attempts(client, course)
    if number == signal.SIGTERM and any(attempts):
        return f"handed off, but attempts are {attempts}"
    return None


async def _wake(first: Life, client: Client, course: Course, effects: Effects) -> str | None:
    """The process that was stopped stores nothing more, and repeats no write."""

    async def state() -> tuple[list[TurnEvent], str, int]:
        reply = await client.reply(course.turn_id)
        return await _events(client, course), str(reply.content), effects.counts["refund"]

    assert first.process is not None
    before = await state()
    await first.process.send(signal.SIGCONT)
    await first.process.send(signal.SIGTERM)
    await first.crashed()
    return None if before == await state() else "the woken process changed something"


@asynccontextmanager
async def _scenes(server: PostgresServer) -> AsyncGenerator[list[Scene]]:
    async with AsyncExitStack() as stack:
        scenes: list[Scene] = []
        for database, postgres in (("SQLite", None), ("PostgreSQL", server)):
            courses, processes = await stack.enter_async_context(order_courses(postgres, expires=False))
            await courses.whole()
            scenes.append(Scene(database, courses, processes))
        yield scenes


async def record(server: PostgresServer) -> tuple[list[Interrupted], list[str]]:
    """Interrupts the turn everywhere."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(scene: Scene, commit: int, at: Position, number: signal.Signals) -> Interrupted:
        async with free:
            try:
                found = await scene.interrupt(commit, at, number)
            except Exception as exc:
                found = Interrupted(at, scene.database, number, "", f"{type(exc).__name__}: {exc}")
        print(f"{scene.database}, {number.name} {at}: {found.cell}", flush=True)
        return found

    async with _scenes(server) as scenes:
        losing = [asyncio.create_task(it.lose()) for it in scenes]
        found = await asyncio.gather(
            *(
                one(scene, commit, at, number)
                for scene in scenes
                for number in SIGNALS[scene.database]
                for commit, at in positions(scene.courses.commits)
            )
        )
        return found, await asyncio.gather(*losing)


def page(found: Sequence[Interrupted], losses: Sequence[str], commit: str, seconds: float) -> str:
    """The record."""
    columns = [(database, number) for database, numbers in SIGNALS.items() for number in numbers]
    cells: dict[Position, dict[tuple[str, signal.Signals], str]] = {}
    for it in found:
        cells.setdefault(it.position, {})[it.database, it.number] = it.cell
    rows = (
        f"| {at} | {' | '.join(by_column.get(it, '–') for it in columns)} |"
        for at, by_column in cells.items()
    )
    head: list[tuple[str, ...]] = [
        ("position", *(f"{number.name}, {database}" for database, number in columns))
    ]
    head.append(("---",) * len(head[0]))
    wrong = sum(it.problem is not None for it in found)
    date = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    return (
        f"{date}, commit `{commit}`: {len(found)} interruptions in {seconds / 60:.0f} minutes; "
        f"{wrong} turns ended in another way than documented.\n\n"
        + "\n".join((*(f"| {' | '.join(it)} |" for it in head), *rows))
        + "".join(f"\n\n{it}" for it in losses)
        + "\n"
    )


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty=, with changes"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Writes the record; fails if a turn ended otherwise than documented."""
    began, commit = monotonic(), _commit()
    with PostgresServer() as server:
        asyncio.run(migrate(server.create_database(TEMPLATE)))
        found, losses = asyncio.run(record(server))
    before, _, rest = RECORD.read_text(encoding="utf-8").partition(BEGINS)
    after = rest.partition(ENDS)[2]
    written = page(found, losses, commit, monotonic() - began)
    RECORD.write_text(f"{before}{BEGINS}{written}{ENDS}{after}", encoding="utf-8")
    wrong = [it for it in found if it.problem is not None]
    print(f"{len(found)} interruptions, {len(wrong)} of them felt; {RECORD}")
    return 1 if wrong or any("`INTERRUPTED`" not in it for it in losses) else 0


if __name__ == "__main__":
    sys.exit(main())
