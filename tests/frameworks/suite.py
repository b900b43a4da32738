"""What every framework's shop has to do, crashed or not."""

import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from tests.frameworks.shop import FAKES, FORGOTTEN, REFUND, REFUNDED, REMEMBERED, WHICH
from threadkeep.agents import Agent, load
from threadkeep.client import Client, TurnWaiting
from threadkeep.testing import crash_everywhere, running_app
from threadkeep.testing.agents import Effects
from threadkeep.testing.crashes import Crash, CrashReport
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
)
"""Where the shop is crashed in the ordinary run; `python -m tests.frameworks` crashes it everywhere."""


class Positions:
    """Positions by what is committed there, in whatever scope."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __contains__(self, position: object) -> bool:
        return re.sub(r"\S+/", "", str(position)) in self._names


async def crash(agent: Agent, only: Sequence[str] | None = SAMPLE, *, kill: bool = False) -> CrashReport:
    """Crashes the shop's first turn; where it isn't cut off in a write, it ends as without a crash."""
    where = None if only is None else Positions(only)
    report = await crash_everywhere(
        agent, REFUND, answers=["allow"], steps=FAKES, only=where, kill=kill, check=not kill
    )
    assert (words(report.whole.text), report.whole.status) == (REFUNDED, "COMPLETED"), report.whole
    assert report.whole.questions == ["Call refund?"], report.whole.questions
    report.check()
    problems = {str(it.position): found for it in report.crashes if (found := problem_of(it)) is not None}
    assert not problems, problems
    return report


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
