"""Code that changes while a turn has no node: what is recorded holds, or nothing happens."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.dying import DyingNode, dying_node, mortality
from tests.faults.programs import Sent, send, settings_on
from tests.postgres import Postgres
from threadkeep.agents import Agent, Turn, agent
from threadkeep.runtime import heartbeat
from threadkeep.testing import ScriptedModel, until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality")

BEFORE = ("one", "two", "three")
"""What the code does at first. Its node dies when it has done two of them."""
CRASHED_AFTER = 2
CHANGED = "The agent's code has changed since this reply began, so the reply can't continue."

WRITES = defaultdict[str, list[str]](list)
"""What was written, by agent."""


async def write(agent_key: str, what: str) -> str:
    WRITES[agent_key].append(what)
    return what


@dataclass(frozen=True)
class Change:
    """What the code does after the crash instead."""

    name: str
    steps: Sequence[str]
    recorded: str | None = None
    """What was recorded next where that is found; None if the turn just goes on."""
    asked: str = ""

    @property
    def key(self) -> str:
        return self.name.lower().replace(" ", "-")

    def agent(self, steps: Sequence[str], crashed: asyncio.Event | None = None) -> Agent:
        """The agent that takes these steps, each named by what it writes."""

        @agent(key=self.key, name=self.name)
        async def takes_steps(turn: Turn) -> str:
            for number, what in enumerate(steps):
                if crashed is not None and number == CRASHED_AFTER:
                    await self._wait(crashed)
                name = what.partition(" ")[0]
                await turn.step(write, self.key, what, name=name)
            return "Done."

        return takes_steps

    async def _wait(self, crashed: asyncio.Event) -> None:
        WRITES[self.key].append("crash")
        await crashed.wait()


CHANGES = [
    Change("Not at all", ["one", "two", "three"]),
    Change("An argument", ["one", "two too", "three"], recorded="two", asked="two with other arguments"),
    Change("Another step", ["one", "deux", "three"], recorded="two", asked="deux"),
    Change("Removed before", ["two", "three"], recorded="one", asked="two"),
    Change("Removed at the end", ["one"], recorded="two", asked="the end"),
    Change("Swapped", ["two", "one", "three"], recorded="one", asked="two"),
    Change("Swapped with what is new", ["one", "three", "two"], recorded="two", asked="three"),
    Change("Added at the beginning", ["zero", "one", "two", "three"], recorded="one", asked="zero"),
    Change("Added between", ["one", "more", "two", "three"], recorded="two", asked="more"),
    Change("Added after", ["one", "two", "more", "three"]),
    Change("An argument after", ["one", "two", "three too"]),
    Change("Removed after", ["one", "two"]),
]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_changed_code_continues_or_is_found_to_differ_before_it_does_anything(
    database: str,
    tmp_path: Path,
    model: ScriptedModel,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    WRITES.clear()
    async with settings_on(database, model, tmp_path, postgres, agents_patience_s=0.5) as settings:
        never = asyncio.Event()
        async with dying_node(settings, [it.agent(BEFORE, never) for it in CHANGES]) as node:
            sent = [await send(node, it.name) for it in CHANGES]
            await until(lambda: all(WRITES[it.key] == ["one", "two", "crash"] for it in CHANGES))
            node.life.end()
        async with dying_node(settings, [it.agent(it.steps) for it in CHANGES]) as node:
            await node.expire_leases()
            async with asyncio.TaskGroup() as group:
                for change, message in zip(CHANGES, sent, strict=True):
                    group.create_task(check(node, change, message))
    # Code that asks for nothing new may only be slow, and is tried twice.
    diverged = {it.getMessage().partition(":")[0] for it in caplog.records if "diverged" in it.getMessage()}
    assert len(diverged) == sum(it.recorded is not None for it in CHANGES)


async def check(node: DyingNode, change: Change, sent: Sent) -> None:
    """Nothing is done again, and nothing new unless all that is recorded was asked for."""
    turn = await sent.until(node)
    page: dict[str, Any] = await sent.steps(node)
    written = WRITES[change.key][len(("one", "two", "crash")) :]
    if change.recorded is None:
        assert turn["status"] == "COMPLETED"
        assert written == list(change.steps[CRASHED_AFTER:])
        assert (await sent.reply(node))["content"] == "Done."
        assert "diverged" not in page
        return
    error = turn["error"]
    assert (turn["status"], error["code"], error["message"]) == ("FAILED", "REPLAY_DIVERGED", CHANGED)
    assert written == []
    assert page["diverged"] == {"recorded": change.recorded, "asked": change.asked}
    assert [(it["name"], it["status"]) for it in page["items"]] == [("one", "ok"), ("two", "ok")]
