"""Turns that go on after a crash: several nodes at once, decisions from everywhere, clocks and versions."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TEMPLATE
from tests.faults.dying import Death, DyingNode, Point, dying_node, mortality
from tests.faults.scene import (
    ANSWER,
    Person,
    agent_settings,
    check_end,
    converse,
    desk,
    kinds,
    reply_to,
    settings_of,
    stage_of,
)
from tests.postgres import Postgres
from threadkeep.bootstrap import adapters
from threadkeep.clock import system_clock
from threadkeep.domain.events import Text, TurnEvent
from threadkeep.runtime import heartbeat
from threadkeep.runtime.signals import Signals
from threadkeep.storage import approvals, turn_log, turns
from threadkeep.storage.turns import LOG_VERSION
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, ToolServer, Wait
from threadkeep.testing.waiting import until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality")


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with desk() as server:
        yield server


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, model: ScriptedModel) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    model.otherwise = reply_to


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.borrow_database(TEMPLATE)
    yield url
    postgres.give_back(url)


@asynccontextmanager
async def two_nodes(
    model: ScriptedModel, folder: Path, url: str
) -> AsyncGenerator[tuple[DyingNode, DyingNode]]:
    settings = settings_of(model, folder, url)
    async with dying_node(settings) as here, dying_node(settings) as there:
        yield here, there


async def ask_for_answer(node: DyingNode, server: ToolServer, about: str = "it") -> tuple[Person, str]:
    """A turn that waits for its user, and the path of the answer."""
    agent = await converse(node.client, agent_settings(server))
    person = await Person.meet(node.client, agent, about, is_decided_elsewhere=True)
    talking = asyncio.create_task(person.talk(node.client))
    await until(lambda: person.request_id is not None)
    await until(lambda: is_waiting(node, person))
    talking.cancel()
    await asyncio.wait([talking])
    return person, f"/api/turns/{person.turn_id}/approvals/{person.request_id}"


async def is_waiting(node: DyingNode, person: Person) -> bool:
    return (await node.client.get(f"/api/turns/{person.turn_id}")).json()["status"] == "WAITING"


async def test_same_decision_at_two_nodes(tmp_path: Path, url: str, model: ScriptedModel, server: ToolServer):
    async with two_nodes(model, tmp_path, url) as (here, there):
        person, path = await ask_for_answer(here, server)
        responses = await asyncio.gather(*(node.client.post(path, json=ANSWER) for node in (here, there)))
        assert [it.status_code for it in responses] == [200, 200]
        await person.talk(there.client)
        await check_end(here.client, person, server, model)
        other = await here.client.post(path, json={"action": "answer", "content": "The red one."})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "APPROVAL_ANSWERED")
        again = await there.client.post(path, json=ANSWER)
        assert again.status_code == 200


async def test_one_of_two_different_decisions_counts_and_both_see_it(
    tmp_path: Path, url: str, model: ScriptedModel, server: ToolServer
):
    async with two_nodes(model, tmp_path, url) as (here, there):
        person, path = await ask_for_answer(here, server)
        watching = [asyncio.create_task(person.watch(node.client)) for node in (here, there)]
        contents = ["The blue one.", "The red one."]
        responses = await asyncio.gather(
            *(
                node.client.post(path, json={"action": "answer", "content": content})
                for node, content in zip((here, there), contents, strict=True)
            )
        )
        assert sorted(it.status_code for it in responses) == [200, 409]
        (taken,) = (
            it for it, response in zip(contents, responses, strict=True) if response.status_code == 200
        )
        await person.talk(here.client)
        for shown in await asyncio.gather(*watching):
            assert shown == person.seen
        (told,) = (it for it in person.seen if it["type"] == "approval_response")
        assert told["content"] == taken
        assert person.seen[-1]["status"] == "COMPLETED"


@asynccontextmanager
async def held_at_its_pause(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[DyingNode, Person, asyncio.Task[None], asyncio.Event]]:
    """A turn that has paused on a node that keeps hold of it until the event is set."""
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def tell(signals: Signals, turn: Any) -> None:
        paused.set()
        await go_on.wait()

    monkeypatch.setattr(Signals, "paused", tell)
    settings = settings_of(model, tmp_path, f"sqlite:///{tmp_path}/data/threadkeep.db")
    async with dying_node(settings) as node:
        ask_first = agent_settings(server, tools={"desk.note": {"access": "ask"}})
        person = await Person.meet(
            node.client, await converse(node.client, ask_first), "it", is_decided_elsewhere=True
        )
        talking = asyncio.create_task(person.talk(node.client))
        await paused.wait()
        yield node, person, talking, go_on
        talking.cancel()


async def test_decision_that_arrives_before_the_node_has_released_the_turn(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
):
    async with held_at_its_pause(tmp_path, model, server, monkeypatch) as (node, person, _, go_on):
        path = f"/api/turns/{person.turn_id}/approvals/{person.request_id}"
        assert (await node.client.post(path, json={"action": "allow"})).status_code == 200
        go_on.set()  # the turn runs here again by now
        await until(lambda: kinds(person.seen)["approval_request"] == 2)
        assert kinds(person.seen)["turn_resumed"] == 0
        assert [use.tool_name for use in server.uses].count("note") == 1


async def test_abort_that_comes_before_the_node_has_let_go_of_the_turn(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, monkeypatch: pytest.MonkeyPatch
):
    async with held_at_its_pause(tmp_path, model, server, monkeypatch) as (node, person, talking, go_on):
        aborting = asyncio.create_task(node.client.post(f"/api/conversations/{person.conversation}/abort"))
        await asyncio.sleep(0.1)  # by then it was told to stop
        go_on.set()
        aborted = await aborting
        assert aborted.status_code == 200, aborted.text
        await talking
        assert person.seen[-1]["status"] == "CANCELLED"


@pytest.mark.parametrize("seconds", [30, -30])
async def test_clock_of_the_node_that_dies_is_off(
    tmp_path: Path,
    url: str,
    model: ScriptedModel,
    server: ToolServer,
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
):
    settings = settings_of(model, tmp_path, url)
    with monkeypatch.context() as patched:
        patched.setattr(adapters, "system_clock", lambda: system_clock() + seconds * 1000)
        away = dying_node(settings)
        here = await away.__aenter__()
    async with dying_node(settings) as there:
        agent = await converse(there.client, agent_settings(server, generationTimeoutS=20))
        people = [await Person.meet(there.client, agent, f"it{number}") for number in range(2)]
        # One is taken over in the middle; the other one runs where the clock is off, to its end.
        await people[1].talk(here.client)
        here.life.end_at(Point(10, Death.AFTER))
        talking = asyncio.create_task(people[0].talk(here.client))
        await here.life.ended.wait()
        talking.cancel()
        await asyncio.wait([talking])
        await away.__aexit__(None, None, None)
        await there.expire_leases()
        for person in people:
            await person.talk(there.client)
            await check_end(there.client, person, server, model)


COUNT = 60


async def test_two_nodes_start_at_once_after_a_crash_with_many_turns(
    tmp_path: Path, url: str, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.database.postgres.WAIT_FOR_CONNECTION_S", 60)
    gate, is_crashed = Gate(), False

    def reply(request: Recorded) -> Reply:
        return [Say("Half"), Say(" and half.")] if is_crashed else [Say("Ha"), Wait(gate)]

    model.otherwise = reply
    settings = settings_of(model, tmp_path, url, user_running_turns=0)
    people: list[Person] = []
    async with dying_node(settings) as node:
        agent = await converse(node.client, {})
        for number in range(COUNT):
            person = await Person.meet(node.client, agent, f"it{number}")
            people.append(person)
            await person.begin(node.client)
        await model.until_requests(COUNT)
        node.life.end()
    gate.open()
    is_crashed = True
    async with two_nodes(model, tmp_path, url) as (here, there):
        await here.expire_leases()
        nodes = (here, there) * COUNT
        async with asyncio.timeout(50):
            await asyncio.gather(
                *(person.talk(node.client) for person, node in zip(people, nodes, strict=False))
            )
    for person in people:
        found = kinds(person.seen)
        # The model is asked while the beginning of its call is still on its way to the database.
        assert (found["turn_resumed"], found["done"]) == (1, 1), person.seen
        assert found["iteration_restart"] <= 1
        assert person.seen[-1]["status"] == "COMPLETED"
    assert len(model.requests) == 2 * COUNT  # each was asked once more, by one of them


@pytest.mark.parametrize("is_asking", [False, True], ids=["running", "waiting"])
async def test_turn_of_a_newer_version_is_left_to_the_nodes_of_that_version(
    tmp_path: Path,
    url: str,
    model: ScriptedModel,
    server: ToolServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_asking: bool,
):
    settings = settings_of(model, tmp_path, url)
    newer = pytest.MonkeyPatch()
    upgrade(newer)
    async with dying_node(settings) as node:
        agent = await converse(node.client, agent_settings(server))
        person = await Person.meet(node.client, agent, "it", is_decided_elsewhere=is_asking)
        talking = asyncio.create_task(person.talk(node.client))
        if is_asking:
            await until(lambda: person.turn_id is not None and person.request_id is not None)
            await until(lambda: is_waiting(node, person))
            node.life.end()
        else:
            node.life.end_at(Point(5, Death.AFTER))
            await node.life.ended.wait()
        talking.cancel()
        await asyncio.wait([talking])
    newer.undo()
    async with dying_node(settings) as old:
        await old.expire_leases()
        stored = await old.stored_log(person.conversation)
        await asyncio.sleep(10 * heartbeat.BEAT_S)
        assert await old.stored_log(person.conversation) == stored
        turn = (await old.client.get(f"/api/turns/{person.turn_id}")).json()
        assert turn["status"] == ("WAITING" if is_asking else "RUNNING")
        old.life.end()
    upgrade(monkeypatch)
    async with dying_node(settings) as new:
        person.is_decided_elsewhere = False
        await person.talk(new.client)
        await check_end(new.client, person, server, model)


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes write logs of the next version from now on."""
    for module in (turn_log, turns, approvals):
        monkeypatch.setattr(module, "LOG_VERSION", LOG_VERSION + 1)
    for module in (turn_log, turns):
        monkeypatch.setattr(module, "PLAIN_LOG_VERSION", LOG_VERSION + 1)


@pytest.mark.parametrize("finishes_a_call", [False, True])
async def test_turn_that_is_lost_again_and_again_is_given_up_unless_it_comes_further(
    tmp_path: Path, model: ScriptedModel, server: ToolServer, *, finishes_a_call: bool
):
    gate = Gate()
    lost = 0

    def next_reply(request: Recorded) -> Reply:
        if lost == LOSSES:
            return reply_to(request)
        # In its third life it comes as far as its second call.
        is_held = stage_of(request) == 2 or not finishes_a_call or lost < 2
        return [Say("So far "), Wait(gate)] if is_held else reply_to(request)

    model.otherwise = next_reply
    settings = settings_of(model, tmp_path, f"sqlite:///{tmp_path}/data/threadkeep.db")
    person, agent = None, ""
    while lost < LOSSES:
        asked = len(model.requests) + (finishes_a_call and lost == 2)
        async with dying_node(settings) as node:
            if person is None:
                agent = await converse(node.client, agent_settings(server))
                person = await Person.meet(node.client, agent, "it")
                await person.begin(node.client)
            await model.until_requests(asked + 1)
            await until(lambda it=node, to=person: has_said(it, to))
            node.life.end()
            await node.expire_leases(LONGEST_DELAY_MS)
        lost += 1
    gate.open()
    assert person is not None
    async with dying_node(settings) as node:
        await person.talk(node.client)
        if finishes_a_call:
            await check_end(node.client, person, server, model)
        else:
            assert person.seen[-1].get("code") == "INTERRUPTED"
            assert kinds(person.seen)["turn_resumed"] == LOSSES - 1
            path = f"/api/conversations/{person.conversation}/messages"
            reply = (await node.client.get(path)).json()["items"][-1]
            assert (reply["status"], reply["content"]) == ("FAILED", "So far ")


LOSSES = 4
LONGEST_DELAY_MS = 11_000


async def has_said(node: DyingNode, person: Person) -> bool:
    """Whether what the model said last is stored."""
    stored = await node.stored_log(person.conversation)
    return bool(stored) and isinstance(stored[-1], TurnEvent) and isinstance(stored[-1].body, Text)
