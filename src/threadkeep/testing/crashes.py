"""An agent in code, crashed at every commit of its turn: `await crash_everywhere(orders, "Refund 7")`.

A crash is one of Threadkeep: from a commit on, its database takes nothing more from it; another Threadkeep
then continues on the same database. In one process, what an agent keeps in its own memory survives that. With
`kill=True`, Threadkeep runs in a process of its own, which kills itself there, and another process continues.
"""

import asyncio
import itertools
import signal
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any, Protocol

from threadkeep.agents import Agent
from threadkeep.client import Client, NotReached
from threadkeep.log.writer import STORES_EACH
from threadkeep.testing.agents import TIMEOUT_S, AgentRun, Course, Effects, Fakes, Prepare
from threadkeep.testing.app import SECRET, RunningApp, admin_token, running_app, usual_settings
from threadkeep.testing.commits import Commits, Moment, Position, commits_in, model_calls_in
from threadkeep.testing.diaries import DiaryFile
from threadkeep.testing.processes import Process, Processes
from threadkeep.testing.scripted_model import ScriptedModel
from threadkeep.testing.spawning import Ending

DIVERGED = "REPLAY_DIVERGED"
PATIENCE_S = 2.0
"""How long other code may ask for nothing that is recorded; on a server it is longer."""
PAUSE_AFTER_S = 0.05
DATA, DIARY, TEMPLATE = "data", "diary", "template"
"""In the folder of a run."""

_TIMES = frozenset(("at", "durationMs", "expiresAt", "startedAt"))
_VARIES = _TIMES | {"artifactIds", "iteration", "parentId", "requestId", "stepId", "toolCallId"}
"""What of a part, or of an answer in it, says when it was made or which one it is."""
_NESTED = ("answer", "approval")


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash at one commit, and what became of the turn."""

    commit: int
    """Which commit of the turn it is, from 1."""
    position: Position
    """The same by what is committed there: `after step_end find_order`."""
    code: Agent
    """What continued the turn."""
    run: AgentRun | None
    """None if the turn ended without that commit."""
    extra_calls: tuple[str, ...] = ()
    """The steps that were called more often than without a crash: a second time, or only because of it."""
    problem: str | None = None

    @property
    def moment(self) -> Moment:
        """Whether it was right before or right after the commit."""
        return self.position.moment

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.run is None:
            return "not reached"
        if self.problem is not None:
            return "DIFFERENT"
        if self.run.error is not None and self.run.error.code == DIVERGED:
            return "diverged"
        return "unknown" if _has_unknown(self.run) else "alike"


@dataclass(frozen=True, slots=True)
class CrashReport:
    """What became of a turn without a crash, and of each crash; prints as a table."""

    whole: AgentRun
    crashes: Sequence[Crash]

    def check(self) -> None:
        """Raises AssertionError unless each turn ended as it does without a crash.

        A write that was cut off may end it with OutcomeUnknown, and other code with REPLAY_DIVERGED.
        """
        wrong = [it for it in self.crashes if it.problem is not None]
        if wrong:
            told = "\n".join(f"{it.position}: {it.problem}" for it in wrong)
            raise AssertionError(f"{len(wrong)} of {len(self.crashes)} crashes were felt.\n{told}\n\n{self}")
        if not any(it.run is not None for it in self.crashes):
            raise AssertionError("Nothing was tried: `only` names no commit of the turn.")

    def __str__(self) -> str:
        rows = [("", "crash", "continued by", "extra calls", "ended"), *map(_row, self.crashes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


def _row(crash: Crash) -> tuple[str, ...]:
    code = f"{crash.code.key} {crash.code.version}"
    return str(crash.commit), str(crash.position), code, ", ".join(crash.extra_calls), crash.outcome


async def crash_everywhere(
    agent: Agent,
    text: str,
    *,
    answers: Sequence[Any] = (),
    model: Callable[[], ScriptedModel] | None = None,
    steps: Fakes | None = None,
    agents: Sequence[Agent] = (),
    prepare: Prepare | None = None,
    on: Sequence[Agent] = (),
    only: Container[int] | Container[str] | None = None,
    kill: bool = False,
    pause_everywhere: bool = True,
    check: bool = True,
    timeout_s: float = TIMEOUT_S,
    **settings: Any,
) -> CrashReport:
    """Runs an agent as `run_agent` does, then again and again with a crash right before and after a commit.

    `model` makes a model for each run; without it, one answers `OK.`. `on` has other code to continue with;
    `only` the commits to try, by number, name or position. With `kill`, a crash is the SIGKILL of a process.
    With `pause_everywhere`, the function ends at every question, and runs again when that is answered.
    `check` is that of `run_agent`, after the run without a crash; with `kill`, there is none.
    """
    fakes, codes = steps or {}, on or (agent,)
    usual = {
        "agents_patience_s": PATIENCE_S,
        **({"agents_pause_after_s": PAUSE_AFTER_S} if pause_everywhere else {}),
    }
    async with AsyncExitStack() as stack:
        lives: Lives = InProcess(fakes, agents)
        if kill:
            processes = await stack.enter_async_context(
                Processes(list(dict.fromkeys((agent, *codes))), fakes, beside=agents)
            )
            lives = Killed(processes)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threadkeep-")))
        courses = Courses(
            agent=agent,
            text=text,
            answers=answers,
            model=model or ScriptedModel,
            fakes=fakes,
            timeout_s=timeout_s,
            settings={**usual, **settings},
            pauses=pause_everywhere,
            lives=lives,
            folder=folder,
            check=check,
            preparing=prepare,
        )
        whole = await courses.whole()
        crashes = [
            await courses.crashed(commit, position, code)
            for commit, position in positions(courses.commits)
            if _is_wanted(commit, position, only)
            for code in codes
        ]
    return CrashReport(whole, crashes)


def positions(commits: Sequence[str]) -> Iterator[tuple[int, Position]]:
    """All moments but the one after the last commit: there the turn has ended."""
    moments: tuple[Moment, ...] = ("before", "after")
    found = ((at, Position(it, name)) for at, name in enumerate(commits, 1) for it in moments)
    return itertools.islice(found, max(2 * len(commits) - 1, 0))


def _is_wanted(commit: int, position: Position, only: Container[Any] | None) -> bool:
    if only is None:
        return True
    if isinstance(only, str):
        only = (only,)
    return commit in only or position.commit in only or str(position) in only


@dataclass(frozen=True, slots=True)
class Life:
    """A Threadkeep, from its start to its end."""

    client: Client
    crashed: Callable[[], Awaitable[object]]
    """Returns when it has crashed."""
    process: Process | None = None
    """The process that it is, unless it is in this one."""
    app: RunningApp | None = None


class Lives(Protocol):
    """Where Threadkeeps live, and how they crash."""

    def live(
        self,
        code: Agent,
        folder: Path,
        settings: Mapping[str, Any],
        model: ScriptedModel,
        at: Position | None = None,
    ) -> AbstractAsyncContextManager[Life]:
        """A Threadkeep with its data in a folder, until it crashes or the block ends."""
        ...


class InProcess:
    """In this process; it goes on after a crash, but nothing more is stored."""

    def __init__(self, fakes: Fakes, beside: Sequence[Agent] = ()) -> None:
        self._fakes = fakes
        self._beside = beside
        """The agents that each has besides its own."""

    @asynccontextmanager
    async def live(
        self,
        code: Agent,
        folder: Path,
        settings: Mapping[str, Any],
        model: ScriptedModel,
        at: Position | None = None,
    ) -> AsyncGenerator[Life]:
        """It crashes by losing its turn."""
        crashed, diary = asyncio.Event(), DiaryFile(folder / DIARY)

        def crash() -> None:
            commits.crash()
            crashed.set()

        commits = Commits(diary, at, crash)
        agents = [*map(Effects(self._fakes, diary).of, (code, *self._beside))]
        given = STORES_EACH.set(True)
        try:
            in_folder: dict[str, Any] = {**settings, "data": folder / DATA}
            async with running_app(model, agents=agents, **in_folder) as app:
                commits.watch((await app.app.services()).store)
                yield Life(app.client, crashed.wait, app=app)
        finally:
            STORES_EACH.reset(given)


class Killed:
    """In processes of their own."""

    def __init__(self, processes: Processes, number: signal.Signals = signal.SIGKILL) -> None:
        self._processes = processes
        self._number = number

    @asynccontextmanager
    async def live(
        self,
        code: Agent,
        folder: Path,
        settings: Mapping[str, Any],
        model: ScriptedModel,
        at: Position | None = None,
    ) -> AsyncGenerator[Life]:
        """It crashes by a signal that it sends itself."""
        ending = at and Ending(at.moment, at.commit, self._number)
        async with AsyncExitStack() as stack:
            if not model.is_running:
                stack.enter_context(model)
            usual = usual_settings(
                model,
                jwt_secret=SECRET,
                **{"mcp_allow_private": True, **settings, "data": str(folder / DATA)},
            )
            running = self._processes.running(code, folder, usual, folder / DIARY, ending)
            process = await stack.enter_async_context(running)
            client = await stack.enter_async_context(Client(process.url, token=admin_token()))
            number = self._number if at is not None else None
            yield Life(client, lambda: process.crashed(number), process)


@dataclass(kw_only=True)
class Courses:
    """The same turn again and again."""

    agent: Agent
    text: str
    answers: Sequence[Any]
    model: Callable[[], ScriptedModel]
    fakes: Fakes
    timeout_s: float
    settings: Mapping[str, Any]
    pauses: bool
    lives: Lives
    folder: Path
    check: bool = False
    course_of: type[Course] = Course
    """What is done with the agent: one turn, or a course of several."""
    commits: Sequence[str] = ()
    """Those of the turn without a crash."""
    preparing: Prepare | None = None
    asked_id: str | None = None
    """What that has returned."""

    async def whole(self) -> AgentRun:
        """The turn without a crash."""
        await self.prepare()
        async with self.ground() as (folder, settings):
            diary = DiaryFile(folder / DIARY)
            effects = Effects(self.fakes, diary)
            course = self.course(effects)
            async with self.lives.live(self.agent, folder, settings, self.model()) as life:
                self._whole = await self._run(life, course)
                if self.check and life.app is not None:
                    await course.check(life.app)
            self._counts = effects.counts
            self.commits = commits_in(diary)
        return self._whole

    async def crashed(self, commit: int, position: Position, code: Agent) -> Crash:
        """The turn with one crash."""
        async with self.ground() as (folder, settings):
            diary = DiaryFile(folder / DIARY)
            effects = Effects(self.fakes, diary)
            course = self.course(effects)
            async with self.lives.live(self.agent, folder, settings, self.model(), position) as life:
                if not await _crashes(life, course.run(life.client, self.text)):
                    return Crash(commit, position, code, None)
            model = self.model()
            model.skip(model_calls_in(diary))
            await self.lose(settings)
            async with self.lives.live(code, folder, settings, model) as life:
                run = await self._run(life, course)
            return self.compared(commit, position, code, run, effects)

    async def prepare(self) -> None:
        """Makes the database with which all runs begin."""
        first = self.folder / TEMPLATE
        first.mkdir()
        async with self.lives.live(self.agent, first, self.settings, self.model()) as life:
            if self.preparing is not None:
                self.asked_id = await self.preparing(life.client)

    @asynccontextmanager
    async def ground(self) -> AsyncGenerator[tuple[Path, Mapping[str, Any]]]:
        """A folder for another run, and its settings, with a database of its own."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            copytree(self.folder / TEMPLATE / DATA, Path(folder, DATA))
            yield Path(folder), self.settings

    async def lose(self, settings: Mapping[str, Any]) -> None:
        """What has to pass between a crash and the next life; nothing, with one process at a time."""

    async def _run(self, life: Life, course: Course) -> AgentRun:
        """The turn to its end, in a life without a crash."""
        running = asyncio.ensure_future(course.run(life.client, self.text))
        await _crashes(life, running)
        return running.result()

    def course(self, effects: Effects) -> Course:
        """The turn, for as many lives as it takes."""
        course = self.course_of(self.agent, effects, self.answers, self.timeout_s, pauses=self.pauses)
        course.asked_id = self.asked_id
        return course

    def compared(
        self, commit: int, position: Position, code: Agent, run: AgentRun, effects: Effects
    ) -> Crash:
        """A run with a crash, beside the one without."""
        extra_calls = tuple(sorted(effects.counts - self._counts))
        return Crash(commit, position, code, run, extra_calls, self._problem(run, code, effects))

    def _problem(self, run: AgentRun, code: Agent, effects: Effects) -> str | None:
        for name in sorted(effects.writes):
            count, most = effects.counts[name], max(self._counts[name], 1)
            if count > most:
                return f"the write `{name}` ran {count} times instead of {most}."
        if _has_unknown(run):
            return None
        if code is not self.agent and run.error is not None and run.error.code == DIVERGED:
            return None
        return _difference(run, self._whole)


def _has_unknown(run: AgentRun) -> bool:
    if any("unknown" in it.statuses for it in run.steps.values()):
        return True
    return any(it.get("status") == "unknown" for it in run.parts)  # of a tool of a server


def _difference(run: AgentRun, whole: AgentRun) -> str | None:
    """What tells two runs apart."""
    if run.status != whole.status:
        why = f", {run.error.code}: {run.error.message}" if run.error is not None else ""
        return f"the turn ended as {run.status} instead of {whole.status}{why}"
    for one, other in itertools.zip_longest(_lasting(run), _lasting(whole)):
        if one != other:
            return f"the reply has {one} instead of {other}"
    return None if run.text == whole.text else f"the text is {run.text!r} instead of {whole.text!r}"


def _lasting(run: AgentRun) -> list[Mapping[str, Any]]:
    """The parts of a reply that count, without what differs from run to run."""
    return [_without_varying(it) for it in run.parts if not it.get("superseded")]


def _without_varying(part: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = {name: _without_varying(part[name]) for name in _NESTED if isinstance(part.get(name), dict)}
    return {name: value for name, value in {**part, **nested}.items() if name not in _VARIES}


async def _crashes(life: Life, running: Awaitable[object]) -> bool:
    """Whether a Threadkeep crashes while something runs, which then ends; raises what that raises before."""
    tasks = [asyncio.ensure_future(life.crashed()), asyncio.ensure_future(running)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0] not in done and isinstance(tasks[1].exception(), NotReached):
            done, _ = await asyncio.wait(tasks[:1], timeout=TIMEOUT_S)  # its end is on its way to us
        tasks[0 if tasks[0] in done else 1].result()
        return tasks[0] in done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
