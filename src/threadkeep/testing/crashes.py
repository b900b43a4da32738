"""An agent in code, crashed at every commit of its turn: `await crash_everywhere(orders, "Refund 7")`.

A crash is one of Threadkeep: from a commit on, its database takes nothing more from it; another Threadkeep
then continues on the same database. The process goes on, so what an agent keeps in its own memory survives.
"""

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from threadkeep.agents import Agent
from threadkeep.domain.errors import StorageConflict
from threadkeep.testing.agents import TIMEOUT_S, AgentRun, Course, Effects, Fakes
from threadkeep.testing.app import RunningApp, running_app
from threadkeep.testing.scripted_model import ScriptedModel

T = TypeVar("T")
Moment = Literal["before", "after"]

DIVERGED = "REPLAY_DIVERGED"

_TIMES = frozenset(("at", "durationMs", "expiresAt", "startedAt"))
_VARIES = _TIMES | {"iteration", "parentId", "requestId", "stepId", "toolCallId"}
"""What of a part, or of an answer in it, says when it was made or which one it is."""
_NESTED = ("answer", "approval")


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash at one commit, and what became of the turn."""

    commit: int
    moment: Moment
    code: Agent
    """What continued the turn."""
    run: AgentRun | None
    """None if the turn ended in fewer commits."""
    again: tuple[str, ...] = ()
    """The steps that ran more often than without a crash."""
    problem: str | None = None

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
            told = "\n".join(f"{it.moment} commit {it.commit}: {it.problem}" for it in wrong)
            raise AssertionError(f"{len(wrong)} of {len(self.crashes)} crashes were felt.\n{told}\n\n{self}")
        if not any(it.run is not None for it in self.crashes):
            raise AssertionError("Nothing was tried: `only` names no commit of the turn.")

    def __str__(self) -> str:
        rows = [("crash", "continued by", "ran again", "ended"), *map(_row, self.crashes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


def _row(crash: Crash) -> tuple[str, ...]:
    code = f"{crash.code.key} {crash.code.version}"
    return f"{crash.moment} commit {crash.commit}", code, ", ".join(crash.again), crash.outcome


async def crash_everywhere(
    agent: Agent,
    text: str,
    *,
    answers: Sequence[Any] = (),
    model: Callable[[], ScriptedModel] = ScriptedModel,
    steps: Fakes | None = None,
    on: Sequence[Agent] = (),
    only: Container[int] | None = None,
    timeout_s: float = TIMEOUT_S,
    **settings: Any,
) -> CrashReport:
    """Runs an agent as `run_agent` does, then again and again with a crash right before and after a commit.

    `model` makes a model for each run. `on` has other code to continue with; `only` the commits to try.
    """
    course = _Courses(agent, text, answers, model, steps or {}, timeout_s, settings)
    whole = await course.whole()
    crashes: list[Crash] = []
    for commit, moment in _points(course.commits):
        if only is None or commit in only:
            crashes += [await course.crashed(commit, moment, code) for code in on or (agent,)]
    return CrashReport(whole, crashes)


def _points(commits: int) -> Iterator[tuple[int, Moment]]:
    """All moments but the one after the last commit: there the turn has ended."""
    moments: tuple[Moment, ...] = ("before", "after")
    return itertools.islice(itertools.product(range(1, commits + 1), moments), 2 * commits - 1)


class _Commits:
    """The commits of a turn's log, up to a crash."""

    def __init__(self, at: tuple[int, Moment] | None = None) -> None:
        self.count = 0
        self.crashed = asyncio.Event()
        self._at = at

    async def watch(self, app: RunningApp) -> None:
        """Counts what a Threadkeep commits, and lets it crash."""
        store = (await app.app.services()).store
        append, end = store.log.append, store.turns.end

        async def watched_append(*args: Any, **kwargs: Any) -> set[Any]:
            accepted = await self._commit(lambda: append(*args, **kwargs))
            return set() if accepted is None else accepted

        async def watched_end(*args: Any, **kwargs: Any) -> None:
            if await self._commit(lambda: _true(end(*args, **kwargs))) is None:
                raise StorageConflict("This Threadkeep has crashed.")

        vars(store.log)["append"] = watched_append
        vars(store.turns)["end"] = watched_end

    async def _commit(self, write: Callable[[], Awaitable[T]]) -> T | None:
        """Commits; None if nobody hears of it."""
        if self._reaches("before"):
            return None
        done = await write()
        return None if self._reaches("after") else done

    def _reaches(self, moment: Moment) -> bool:
        self.count += moment == "before"
        if (self.count, moment) == self._at:
            self.crashed.set()
        return self.crashed.is_set()


async def _true(write: Awaitable[None]) -> bool:
    await write
    return True


@dataclass
class _Courses:
    agent: Agent
    text: str
    answers: Sequence[Any]
    model: Callable[[], ScriptedModel]
    fakes: Fakes
    timeout_s: float
    settings: Mapping[str, Any]
    commits: int = 0

    async def whole(self) -> AgentRun:
        """The turn without a crash."""
        effects = Effects(self.fakes)
        course, commits = self._course(effects), _Commits()
        with tempfile.TemporaryDirectory(prefix="threadkeep-") as folder:
            async with self._app(folder, self.agent, effects, self.model()) as app:
                await commits.watch(app)
                await course.start(app.client, self.text)
                self._whole = await course.finish(app.client)
        self.commits, self._effects = commits.count, effects
        return self._whole

    async def crashed(self, commit: int, moment: Moment, code: Agent) -> Crash:
        """The turn with one crash."""
        effects = Effects(self.fakes)
        course, commits = self._course(effects), _Commits((commit, moment))
        with tempfile.TemporaryDirectory(prefix="threadkeep-") as folder:
            async with self._app(folder, self.agent, effects, self.model()) as app:
                await commits.watch(app)
                await course.start(app.client, self.text)
                if not await _is_first(commits.crashed.wait(), course.finish(app.client)):
                    return Crash(commit, moment, code, None)
                asked = await course.count_model_calls(app.client)
            model = self.model()
            model.skip(asked)
            async with self._app(folder, code, effects, model) as app:
                run = await course.finish(app.client)
        again = tuple(sorted(effects.counts - self._effects.counts))
        return Crash(commit, moment, code, run, again, self._problem(run, code, effects))

    def _course(self, effects: Effects) -> Course:
        return Course(self.agent, effects, self.answers, self.timeout_s)

    def _app(
        self, folder: str, code: Agent, effects: Effects, model: ScriptedModel
    ) -> AbstractAsyncContextManager[RunningApp]:
        return running_app(model, agents=[effects.of(code)], **{**self.settings, "data": Path(folder)})

    def _problem(self, run: AgentRun, code: Agent, effects: Effects) -> str | None:
        for name in sorted(effects.writes):
            count, most = effects.counts[name], max(self._effects.counts[name], 1)
            if count > most:
                return f"the write `{name}` ran {count} times instead of {most}."
        if _has_unknown(run):
            return None
        if code is not self.agent and run.error is not None and run.error.code == DIVERGED:
            return None
        return _difference(run, self._whole)


def _has_unknown(run: AgentRun) -> bool:
    return any("unknown" in it.statuses for it in run.steps.values())


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


async def _is_first(one: Awaitable[object], other: Awaitable[object]) -> bool:
    """Whether one thing comes before another; raises what the first of them raises, and ends the other."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0] not in done:
            tasks[1].result()
        return tasks[0] in done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
