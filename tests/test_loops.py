"""Background loops go on whatever happens to a round of theirs, and say when they keep failing."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.making import keep_agent, keep_conversation, keep_turn
from tests.talking import talking
from threadkeep import Settings, loops
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import ConversationId
from threadkeep.domain.user import User, UserId
from threadkeep.loops import Loop, Loops, Work
from threadkeep.services import history as history_module
from threadkeep.services.history import History
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import until

ALICE = User(UserId("alice"))


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)


class Rounds:
    """Work that fails as often as told."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.done = 0

    async def __call__(self) -> None:
        """One round."""
        if self.errors:
            raise self.errors.pop(0)
        self.done += 1
        await asyncio.sleep(0)


async def test_loop_goes_on_after_every_kind_of_failure_which_is_counted():
    all_loops = Loops()
    rounds = Rounds(RuntimeError("a"), StorageUnavailable("b"), asyncio.CancelledError(), MemoryError())
    loop = all_loops.start("indexing", rounds)
    await until(lambda: rounds.done > 3)
    assert all_loops.failures == {"indexing": 4}
    await end_tasks(loop.task)


async def test_loop_that_keeps_failing_is_named_until_it_works_again():
    all_loops, rounds = Loops(), Rounds()
    loop = all_loops.start("indexing", rounds)
    await until(lambda: rounds.done > 0)
    assert all_loops.failing == []
    rounds.errors.extend([RuntimeError("again")] * 10_000)
    await until(lambda: all_loops.failing == ["indexing"])
    rounds.errors.clear()
    await until(lambda: all_loops.failing == [])
    await end_tasks(loop.task)


async def test_loop_that_was_ended_while_it_failed_is_not_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loops, "KEEPS_FAILING", 1)
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 3600)
    all_loops = Loops()
    loop = all_loops.start("indexing", Rounds(RuntimeError("once")), longest_pause_s=3600)
    await until(lambda: all_loops.failing == ["indexing"])
    await end_tasks(loop.task)  # immediately, though it pauses
    assert all_loops.failing == []


@ONLY_SQLITE
async def test_readyz_and_metrics_name_a_loop_that_keeps_failing_while_requests_are_served(api: Api):
    client, watch = api.as_user("root", admin=True), (await api.app.services()).loops.watch("jobs")

    async def told() -> tuple[int, str, list[str], bool]:
        ready, metrics = await client.get("/readyz"), await client.get("/metrics")
        body = ready.json()
        is_failing = 'threadkeep_loop_failing{loop="jobs"} 1' in metrics.text.splitlines()
        return ready.status_code, body["status"], body["failing"], is_failing

    for _ in range(loops.KEEPS_FAILING):
        assert await told() == (200, "ready", [], False)
        watch.failed(RuntimeError("password=hunter2"))
    assert await told() == (200, "degraded", ["jobs"], True)
    watch.succeeded()
    assert await told() == (200, "ready", [], False)


def test_pauses_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.5)
    watch = Loops().watch("x")
    pauses: list[float] = []
    for _ in range(100):
        watch.failed(StorageUnavailable("away"))
        pauses.append(watch.pause_s(10))
    assert pauses[:6] == [0.5, 1, 2, 4, 8, 10]
    assert pauses[-1] == 10


OF_EVERY_SERVER = {
    "search indexing",
    "jobs",
    "cleanup",
    "writer of turn logs",
    "renewal of leases",
    "renewal of places",
    "takeover of turns",
    "takeover of turns that need a program",
    "notices of absent programs",
    "sight of programs",
    "expiry of approvals",
    "end of turns that nobody follows",
    "rest of moved paths",
    "following changes of gateways",
    "looking at gateways",
}
OF_POSTGRES = {"listening to other nodes", "notifying other nodes"}


async def test_server_works_although_the_first_round_of_every_loop_dies(
    database_url: str, talk_settings: Settings, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    start, started = Loops.start, set[str]()

    def start_failing(self: Loops, name: str, work: Work, *rest: Any, **named: Any) -> Loop:
        started.add(name)
        return start(self, name, failing_once(work), *rest, **named)

    monkeypatch.setattr(Loops, "start", start_failing)
    model.script([Say("Because of the lighthouse.")])
    async with talking(talk_settings) as talk:
        conversation = await talk.titled_conversation()
        reply = await talk.ask(conversation, "Why?")
        assert reply["content"] == "Because of the lighthouse."

        async def is_found() -> bool:
            return bool((await talk.client.get("/api/search?q=lighthouse")).json()["items"])

        await until(is_found)
        ready = (await talk.client.get("/readyz")).json()
        metrics = (await talk.client.get("/metrics")).text
    assert started == OF_EVERY_SERVER | (OF_POSTGRES if "postgres" in database_url else set())
    assert (ready["status"], ready["failing"]) == ("ready", [])
    failures = dict(
        re.findall(r'^threadkeep_loop_failures_total\{loop="(.*)"\} (.*)$', metrics, re.MULTILINE)
    )
    assert {name: failures[name] for name in started} == dict.fromkeys(started, "1")


def failing_once(work: Work) -> Work:
    """Work whose first round dies of what nobody expected."""
    errors = [ZeroDivisionError("injected")]

    async def fail_first() -> bool | None:
        if errors:
            raise errors.pop()
        return await work()

    return fail_first


async def test_conversation_that_cannot_be_indexed_waits_and_keeps_no_other_from_being_indexed(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(history_module, "FIRST_RETRY_S", 0.01)
    agent = await keep_agent(store)
    poison, other = [await keep_conversation(store, agent, ALICE.id) for _ in range(2)]
    for conversation in (poison, other):
        await keep_turn(store, conversation, "Where?", "At the lighthouse.")
    follow, is_poisoned = store.history.follow, True

    async def follow_unless_poisoned(conversation_id: ConversationId, *, limit: int) -> bool:
        if conversation_id == poison.id and is_poisoned:
            raise ValueError("a row that nobody expected")
        return await follow(conversation_id, limit=limit)

    monkeypatch.setattr(store.history, "follow", follow_unless_poisoned)
    all_loops = Loops()
    history = History(store, all_loops)

    async def found() -> set[str]:
        hits = await history.search(ALICE, "lighthouse", before=None, limit=10)
        return {hit.conversation_id for hit in hits}

    await history.catch_up()
    await until(equals(found, {other.id}))
    assert all_loops.failures["search indexing"] >= 1
    is_poisoned = False
    await until(equals(found, {poison.id, other.id}))
    await history.close()


async def test_indexing_waits_for_a_database_that_is_away_and_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    conversation = await keep_conversation(store, await keep_agent(store), ALICE.id)
    await keep_turn(store, conversation, "Where?", "At the lighthouse.")
    follow, errors = store.history.follow, [StorageUnavailable("The database is away.")] * 5

    async def follow_when_back(conversation_id: ConversationId, *, limit: int) -> bool:
        if errors:
            raise errors.pop()
        return await follow(conversation_id, limit=limit)

    monkeypatch.setattr(store.history, "follow", follow_when_back)
    history = History(store, Loops())
    history.note(conversation.id)

    async def is_found() -> bool:
        return bool(await history.search(ALICE, "lighthouse", before=None, limit=1))

    await until(is_found)
    await history.close()


def equals(read: Callable[[], Awaitable[object]], expected: object) -> Callable[[], Awaitable[bool]]:
    async def does() -> bool:
        return await read() == expected

    return does
