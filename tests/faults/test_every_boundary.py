"""A node dies at every commit of a turn, before it and after it; another one continues, and all is well.

A failure names its point. To replay it alone: THREADKEEP_POINT=after-7 pytest …/test_every_boundary.py
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import TEMPLATE
from tests.faults.dying import Death, DyingNode, Point, dying_node, mortality
from tests.faults.scene import (
    Away,
    Person,
    agent_settings,
    check_end,
    check_fold,
    check_opening,
    check_requests,
    converse_informed,
    desk,
    kinds,
    reply_to,
    settings_of,
    subject_of,
)
from tests.postgres import Postgres
from threadkeep import Settings
from threadkeep.domain.ids import ConversationId
from threadkeep.log.format import LogEntry
from threadkeep.runtime import heartbeat, leases, running
from threadkeep.testing import ScriptedModel, ToolServer, until

__all__ = ["mortality"]

ONLY = os.environ.get("THREADKEEP_POINT")
AT_ONCE = 4
WAIT_S = 30
LEASE_MS = 1000
FIRST_TO_STALL, LAST_TO_STALL = 2, 24


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with desk() as server:
        yield server


class Broken:
    """A turn whose node has died."""

    def __init__(self, person: Person, point: Point, stored: Sequence[LogEntry], asked: int) -> None:
        self.person = person
        self.point = point
        self._stored = stored
        self._asked = asked
        """How often the model had been asked by then, by anybody."""

    async def finish(self, node: DyingNode, server: ToolServer, model: ScriptedModel) -> None:
        """Goes on at another node to the end, where all must be well."""
        person = self.person
        try:
            async with asyncio.timeout(WAIT_S):
                await person.talk(node.client)
            reply = await check_end(node.client, person, server, model)
            check_opening(person, reply, model)
            stored = await node.store.messages.get(ConversationId(person.conversation), reply["id"])
            assert stored is not None
            check_fold(person, stored)
            sent = [it for it in model.requests[self._asked :] if subject_of(it) == person.about]
            check_requests(self._stored, sent, person)
        except BaseException as exc:
            exc.add_note(f"THREADKEEP_POINT={self.point} ({node.life.commits})")
            exc.add_note("\n".join(str(event) for event in person.seen))
            raise


class Boundaries:
    """Goes through the points of a turn, several at a time: much of a turn is waiting."""

    def __init__(self, model: ScriptedModel, server: ToolServer, death: Death, *, is_patient: bool) -> None:
        self._model = model
        self._server = server
        self._death = death
        self._is_patient = is_patient
        self.most_commits = 0

    async def restart(self, settings: Settings, first: int, every: int) -> None:
        """The node dies, and is started again: so it ends one turn, and dies in the next."""
        agent, broken = "", None
        for point in self._points(first, every):
            async with dying_node(settings) as node:
                if broken is not None:
                    await broken.finish(node, self._server, self._model)
                agent = agent or await converse_informed(node.client, agent_settings(self._server))
                broken = await self._break_off(node, await self._meet(node, agent, point), point)
                if broken is None:
                    return

    async def take_over(self, settings: Settings, first: int, every: int) -> None:
        """The node dies, and another one goes on, where somebody has followed the turn all the time."""
        async with dying_node(settings) as other:
            agent = await converse_informed(other.client, agent_settings(self._server))
            for point in self._points(first, every):
                async with dying_node(settings) as node:
                    person = await self._meet(node, agent, point)
                    watching = asyncio.create_task(person.watch(other.client))
                    broken = await self._break_off(node, person, point)
                if broken is not None:
                    await other.expire_leases()
                    await broken.finish(other, self._server, self._model)
                assert await watching == person.seen
                if broken is None:
                    return

    def _points(self, first: int, every: int) -> Iterator[Point]:
        points = (Point(commit, self._death) for commit in count(first, every))
        return points if ONLY is None else (it for it in points if str(it) == ONLY or it.commit > 100)

    async def _meet(self, node: DyingNode, agent: str, point: Point) -> Person:
        person = {"is_patient": self._is_patient, "brings_tool": True}
        return await Person.meet(node.client, agent, f"{point}", **person)

    async def _break_off(self, node: DyingNode, person: Person, point: Point) -> Broken | None:
        """Has a turn run until its node dies; None when it ends before."""
        node.life.end_at(point)
        talking, dying = (
            asyncio.create_task(it) for it in (person.talk(node.client), node.life.ended.wait())
        )
        await asyncio.wait({talking, dying}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        talking.cancel()
        if not node.life.ended.is_set():
            await talking
            await check_end(node.client, person, self._server, self._model)
            self.most_commits = len(node.life.commits)
            return None
        with suppress(asyncio.CancelledError, Away):  # what a dead node answers is not to be heard
            await talking
        stored = await node.stored_log(person.conversation)
        return Broken(person, point, stored, len(self._model.requests))


@pytest.mark.parametrize("death", Death)
@pytest.mark.usefixtures("piece_by_piece", "mortality")
async def test_server_dies_at_every_commit_and_is_started_again(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, death: Death
):
    model.otherwise = reply_to
    # On the other database the patient and the hasty meet the other death.
    boundaries = Boundaries(model, server, death, is_patient=death is Death.BEFORE)
    async with asyncio.TaskGroup() as chains:
        for first in range(1, AT_ONCE + 1):
            folder = tmp_path / str(first)
            folder.mkdir()
            url = f"sqlite:///{folder}/data/threadkeep.db"
            settings = settings_of(model, folder, url, gateway="anthropic")
            chains.create_task(boundaries.restart(settings, first, AT_ONCE))
    print(f"{boundaries.most_commits} commits, each {death} it")
    assert boundaries.most_commits > 20


@pytest.mark.parametrize("death", Death)
@pytest.mark.usefixtures("piece_by_piece", "mortality")
async def test_node_dies_at_every_commit_and_another_one_continues(
    tmp_path: Path,
    model: ScriptedModel,
    server: ToolServer,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    death: Death,
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    model.otherwise = reply_to
    boundaries = Boundaries(model, server, death, is_patient=death is Death.AFTER)
    urls = [postgres.borrow_database(TEMPLATE) for _ in range(AT_ONCE)]
    async with asyncio.TaskGroup() as chains:
        for first, url in enumerate(urls, 1):
            settings = settings_of(model, tmp_path / str(first), url)
            chains.create_task(boundaries.take_over(settings, first, AT_ONCE))
    for url in urls:
        postgres.give_back(url)
    print(f"{boundaries.most_commits} commits, each {death} it")
    assert boundaries.most_commits > 20


@pytest.mark.parametrize("death", Death)
@pytest.mark.usefixtures("piece_by_piece", "mortality")
async def test_node_stands_still_at_every_commit_for_longer_than_its_lease(
    tmp_path: Path,
    model: ScriptedModel,
    server: ToolServer,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    death: Death,
):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.1)
    for module in (leases, running):
        monkeypatch.setattr(module, "LEASE_MS", LEASE_MS)
    model.otherwise = reply_to
    urls = [postgres.borrow_database(TEMPLATE) for _ in range(AT_ONCE)]
    async with asyncio.TaskGroup() as chains:
        for first, url in enumerate(urls, 1):
            settings = settings_of(model, tmp_path / str(first), url)
            chains.create_task(stall_again_and_again(settings, first, death, server, model))
    for url in urls:
        postgres.give_back(url)


async def stall_again_and_again(
    settings: Settings, first: int, death: Death, server: ToolServer, model: ScriptedModel
) -> None:
    async with dying_node(settings) as other:
        agent = await converse_informed(other.client, agent_settings(server))
        for commit in range(FIRST_TO_STALL + first - 1, LAST_TO_STALL + 1, 2 * AT_ONCE):
            point = Point(commit, death)
            if ONLY not in (None, str(point)):
                continue
            async with dying_node(settings) as node:
                person = await Person.meet(other.client, agent, f"{point}")
                await person.begin(node.client)
                node.life.stall_at(Point(commit - 1, death))  # it has begun
                try:
                    async with asyncio.timeout(WAIT_S):
                        await person.talk(other.client)
                    shown = list(person.seen)
                    assert kinds(shown)["turn_resumed"] <= 1
                    node.life.wake()
                    # It finds out that the turn is another's, and goes on with what is its own.
                    await until(lambda node=node: node.is_idle)
                    again = Person(
                        person.about, person.conversation, person.turn_id, is_decided_elsewhere=True
                    )
                    async with asyncio.timeout(WAIT_S):
                        await again.talk(node.client)
                    assert again.seen == shown
                    check_opening(person, await check_end(node.client, person, server, model), model)
                except BaseException as exc:
                    exc.add_note(f"THREADKEEP_POINT={point} {node.life.commits}")
                    raise
