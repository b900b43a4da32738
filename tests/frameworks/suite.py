"""What every framework's shop has to do, crashed or not."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from tests.faults.killing import killed_courses
from tests.frameworks.shop import FAKES, FORGOTTEN, REFUND, REFUNDED, REMEMBERED, WHICH
from tests.frameworks.visit import ANSWERS, SAID, Visit
from tests.postgres import Postgres
from threadkeep.agents import Agent, load
from threadkeep.client import Client, TurnWaiting
from threadkeep.testing import ScriptedModel, running_app
from threadkeep.testing.agents import TIMEOUT_S, Effects
from threadkeep.testing.crashes import PAUSE_AFTER_S, Courses, Crash, InProcess, positions
from threadkeep.testing.diaries import Diary

SAMPLE = (
    "after begin",
    "before step_end model",
    "after step_end price",
    "before step_end note",
    "after pause",
    "after answer",
    "before step_end refund",
    "after step_end refund",
    "before the end",
    "after begin (2)",
    "before begin (3)",
    "before usage (6)",
    "before the end (3)",
)
"""Where the shop is crashed in the ordinary run; `python -m tests.frameworks` kills it everywhere."""
KILLED = ("after step_end price", "before step_end refund", "after begin (3)")
"""Where its process is really killed there."""


async def crash(agent: Agent, only: Sequence[str] = SAMPLE) -> None:
    """Crashes a visit to the shop; where it isn't cut off in a write, it ends as without a crash."""
    with TemporaryDirectory(prefix="threadkeep-") as folder:
        courses = Courses(
            agent=agent,
            text=REFUND,
            answers=ANSWERS,
            model=ScriptedModel,
            fakes=FAKES,
            timeout_s=TIMEOUT_S,
            settings={"agents_pause_after_s": PAUSE_AFTER_S},
            pauses=True,
            lives=InProcess(FAKES),
            folder=Path(folder),
            check=True,
            course_of=Visit,
        )
        await crash_at(courses, only)


async def kill(agent: Agent, only: Sequence[str], server: Postgres) -> None:
    """Kills the processes of a visit, which PostgreSQL outlives."""
    async with killed_courses(
        agent, REFUND, ANSWERS, FAKES, server, model=ScriptedModel, course_of=Visit
    ) as (courses, _):
        await crash_at(courses, only)


async def crash_at(courses: Courses, only: Sequence[str]) -> None:
    """Crashes a visit at each of these positions."""
    whole, wanted = await courses.whole(), set(only)
    assert (words(whole.text), whole.status) == (SAID, "COMPLETED"), whole
    assert whole.questions == ["Call refund?"], whole.questions
    problems: dict[str, str] = {}
    for commit, position in positions(courses.commits):
        if (name := without_scope(position)) in only:
            found = await courses.crashed(commit, position, courses.agent)
            assert found.run is not None, f"{position} was not reached"
            wanted.discard(name)
            if (problem := problem_of(found)) is not None:
                problems[str(position)] = problem
    assert not problems, problems
    assert not wanted, (wanted, courses.commits)


def without_scope(position: object) -> str:
    """A position by what is committed there, in whatever scope."""
    return re.sub(r"\S+/", "", str(position))


def problem_of(crash: Crash) -> str | None:
    """What is wrong with how a turn ended; only where a write was cut off, it may end differently."""
    if crash.problem is not None or crash.run is None:
        return crash.problem
    if crash.run.status != "COMPLETED":
        return f"it ended as {crash.run.status}: {crash.run.error}"
    is_cut_off = str(crash.position).startswith(("after dispatched", "before step_end", "before tool_result"))
    return f"it is {crash.outcome}" if crash.outcome != "alike" and not is_cut_off else None


async def converse(agent: Agent) -> None:
    """Two turns, a regeneration, an edit and a fork: each is given what is before it on its own branch."""
    async with running_app(agents=[Effects(FAKES, Diary()).of(agent)], agents_pause_after_s=0.05) as app:
        client = app.client
        (agent_id,) = [it.id async for it in client.agents() if it.engine.key == agent.key]
        conversation = await client.create_conversation(agent_id, title="Shop")
        assert await say(client, conversation.id, REFUND) == REFUNDED
        assert await say(client, conversation.id, WHICH) == REMEMBERED
        replies = [it.id async for it in client.messages(conversation.id) if it.role == "assistant"]
        async for _ in client.regenerate(conversation.id, replies[-1]):
            pass
        newest = await anext(client.messages(conversation.id, newest_first=True))
        assert (words(str(newest.content)), newest.id in replies) == (REMEMBERED, False)
        fork = await client.fork(conversation.id, replies[0])
        assert await say(client, fork.id, WHICH) == REMEMBERED
        # An edited first message has nothing before it.
        assert await say(client, conversation.id, WHICH, parent_id=None) == FORGOTTEN


async def say(client: Client, conversation_id: str, text: str, **options: Any) -> str:
    """Sends a message, allows every call, and returns the reply."""
    started = await client.start(conversation_id, text, **options)
    while True:
        try:
            return words(str((await client.reply(started.turn_id)).content))
        except TurnWaiting as waiting:
            for request in waiting.approvals:
                await client.answer(request.turn_id, request.request_id, "allow")


def words(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


_examples: list[ModuleType] = []
"""Kept for good: otherwise their SDKs' open connections are reported in whichever test runs then."""


def load_example() -> Agent:
    """The agent of the example whose folder is the first of the path; all examples are called `shop`."""
    sys.modules.pop("shop", None)
    (orders,) = load("shop:orders")
    _examples.append(sys.modules.pop("shop"))
    return orders
