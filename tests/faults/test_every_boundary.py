"""A node dies at every commit of a turn, before it and after it; another one continues, and all is well.

A failure names its point. To replay it alone: THREADKEEP_POINT=after-7 pytest tests/faults/test_every_boundary.py
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import secret_key_for
from tests.faults.dying import Death, DyingNode, Life, Point, dying_node, lives
from tests.faults.scene import (
    Person,
    agent_settings,
    check_end,
    check_fold,
    check_requests,
    converse,
    desk,
    reply_to,
    subject_of,
)
from threadkeep import Settings
from threadkeep.log.format import LogEntry, decode_entries
from threadkeep.testing import Recorded, ScriptedModel, ToolServer, scripted_settings

__all__ = ["lives"]

ONLY = os.environ.get("THREADKEEP_POINT")


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with desk() as server:
        yield server


def settings_of(model: ScriptedModel, folder: Path, database_url: str, gateway: str) -> Settings:
    return scripted_settings(
        model,
        gateway=gateway,
        data=folder / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        embedding_url="off",
        mcp_allow_private=True,
    )


def chosen(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if ONLY in (None, str(point))]


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
            async with asyncio.timeout(20):
                await person.talk(node.client)
            reply = await check_end(node.client, person, server, model)
            stored = await node.store.messages.get(person.conversation, reply["id"])
            assert stored is not None
            check_fold(person, stored)
            sent = [it for it in model.requests[self._asked :] if subject_of(it) == person.about]
            check_requests(self._stored, sent, person)
        except BaseException as exc:
            exc.add_note(f"THREADKEEP_POINT={self.point} ({node.life.commits})")
            exc.add_note("\n".join(str(event) for event in person.seen))
            raise


async def break_off(node: DyingNode, person: Person, point: Point, model: ScriptedModel) -> Broken | None:
    """Has a turn run until its node dies; None when it ends before."""
    node.life.end_at(point)
    talking, dying = (
        asyncio.create_task(it) for it in (person.talk(node.client), node.life.ended.wait())
    )
    await asyncio.wait({talking, dying}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    if not node.life.ended.is_set():
        talking.cancel()
        await talking
        return None
    talking.cancel()
    with suppress(asyncio.CancelledError, AssertionError):
        await talking
    stored = await node.stored_log(person.conversation)
    return Broken(person, point, stored, len(model.requests))


@pytest.mark.parametrize("is_patient", [True, False], ids=["patient", "hasty"])
@pytest.mark.parametrize("death", Death)
@pytest.mark.usefixtures("piece_by_piece")
async def test_server_dies_at_every_commit_and_is_started_again(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, lives: list[Life], death: Death, *, is_patient: bool
):
    model.otherwise = reply_to
    settings = settings_of(model, tmp_path, f"sqlite:///{tmp_path}/data/threadkeep.db", "anthropic")
    agent, broken, point = "", None, Point(0, death)
    while broken is not None or point.commit == 0:
        point = Point(point.commit + 1, death)
        async with dying_node(settings, lives) as node:
            if broken is not None:
                await broken.finish(node, server, model)
            agent = agent or await converse(node.client, agent_settings(server))
            person = await Person.meet(node.client, agent, f"{point}", is_patient=is_patient)
            broken = await break_off(node, person, point, model)
            if broken is None:
                await check_end(node.client, person, server, model)
                print(f"{len(node.life.commits)} commits: {node.life.commits}")
    assert point.commit > 20
