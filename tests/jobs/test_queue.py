"""Background work: done once, tried again when it fails, not forgotten in a crash."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from threadkeep import Settings, create_app
from threadkeep import loops as loops_module
from threadkeep.bootstrap import opened_jobs_and_store
from threadkeep.domain.ids import new_uuid
from threadkeep.jobs import queue as jobs_module
from threadkeep.jobs.queue import Handler, Jobs, RetryLater, pause_ms
from threadkeep.jobs.titles import TITLE_JOB
from threadkeep.loops import Loops
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.jobs import Job, SqlJobs
from threadkeep.testing.waiting import PATIENCE_S, until

COUNT = Statement("SELECT COUNT(*) FROM tk_jobs")


class Runners:
    """Makes runners on one database, and waits for them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = SqlJobs(database)
        self.done: list[Any] = []
        self.failures: list[Exception] = []
        self._made: list[Jobs] = []

    def start(self, handler: Handler | None = None) -> Jobs:
        """Another runner."""
        self._made.append(Jobs(self.store, {"note": handler or self.note}, Loops()))
        return self._made[-1]

    async def note(self, arguments: Mapping[str, Any]) -> None:
        """Writes down what was to be done, unless it is to fail."""
        if self.failures:
            raise self.failures.pop(0)
        self.done.append(arguments["it"])

    async def until_empty(self) -> None:
        """Until no job is left."""
        while [*await self.database.fetch(COUNT())] != [(0,)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Ends all runners."""
        for jobs in self._made:
            await jobs.close()


@pytest.fixture
async def runners(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runners]:
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_MS", 0)
    runners = Runners(database)
    yield runners
    await runners.close()


async def test_every_job_is_done_once_by_one_of_many(runners: Runners):
    first, second = runners.start(), runners.start()
    for number in range(20):
        await (first if number % 2 else second).add("note", {"it": number})
    await runners.until_empty()
    assert sorted(runners.done) == [*range(20)]


async def test_job_that_fails_is_tried_again(runners: Runners):
    runners.failures = [ValueError("once"), OSError("twice")]
    await runners.start().add("note", {"it": "x"})
    await runners.until_empty()
    assert runners.done == ["x"]


async def test_job_that_always_fails_is_given_up_and_holds_up_nobody(runners: Runners):
    tries = 0

    async def fail(arguments: Mapping[str, Any]) -> None:
        nonlocal tries
        if arguments["it"] == "bad":
            tries += 1
            raise ValueError("no")
        await runners.note(arguments)

    jobs = runners.start(fail)
    await jobs.add("note", {"it": "bad"})
    await jobs.add("note", {"it": "good"})
    await runners.until_empty()
    assert (tries, runners.done) == (jobs_module.MOST_ATTEMPTS, ["good"])


async def test_job_that_only_newer_nodes_know_is_left_to_them(runners: Runners):
    jobs = runners.start()
    await jobs.add("unheard-of", {})
    await jobs.add("note", {"it": "x"})
    await until(lambda: runners.done == ["x"])
    (left,) = await runners.store.take("a-newer-one", "unheard-of", lease_ms=60_000, limit=4)
    assert left.attempts == 1


async def test_job_that_waits_for_somebody_who_is_away_is_never_given_up(runners: Runners):
    runners.failures = [RetryLater("away") for _ in range(4 * jobs_module.MOST_ATTEMPTS)]
    await runners.start().add("note", {"it": "x"})
    await runners.until_empty()
    assert runners.done == ["x"]


def test_pauses_grow_up_to_five_minutes():
    pauses = [pause_ms(attempts) for attempts in (1, 2, 3, 4, 5, 6, 1_000_000)]
    assert pauses == [2_000, 8_000, 32_000, 128_000, 300_000, 300_000, 300_000]


async def test_job_that_waits_already_is_not_added_again_but_comes_sooner(runners: Runners):
    store = runners.store
    for delay_ms in (60_000, 0, 60_000):
        await store.add(Job(new_uuid(), "note", {"it": "x"}), delay_ms=delay_ms)
    await store.add(Job(new_uuid(), "note", {"it": "y"}), delay_ms=60_000)
    (taken,) = await store.take("a-runner", "note", lease_ms=60_000, limit=4)
    assert taken.arguments == {"it": "x"}
    await store.add(Job(new_uuid(), "note", {"it": "x"}))  # what came after the other began is for another
    assert len(await store.take("a-runner", "note", lease_ms=60_000, limit=4)) == 1


async def test_job_of_a_runner_that_died_is_done_by_another(runners: Runners):
    await runners.store.add(Job(new_uuid(), "note", {"it": "x"}))
    (taken,) = await runners.store.take("a-runner", "note", lease_ms=0, limit=4)  # and then it died
    assert taken.attempts == 1
    await asyncio.sleep(0.005)
    runners.start()
    await runners.until_empty()
    assert runners.done == ["x"]


@pytest.mark.parametrize("next_holder", ["another", "a-stalled-one"], ids=["another", "the same again"])
async def test_runner_that_wakes_up_too_late_leaves_the_job_to_its_next_holder(
    runners: Runners, next_holder: str
):
    store = runners.store
    await store.add(Job(new_uuid(), "note", {"it": "x"}))
    (stalled,) = await store.take("a-stalled-one", "note", lease_ms=-1, limit=1)
    (taken,) = await store.take(next_holder, "note", lease_ms=60_000, limit=1)
    assert not await store.finish(stalled)
    assert not await store.postpone(stalled, delay_ms=0, error="late")
    assert await store.take("a-third", "note", lease_ms=60_000, limit=1) == []
    assert await store.postpone(taken, delay_ms=0, error="in time")
    assert not await store.finish(taken)  # it is nobody's now
    (again,) = await store.take("a-third", "note", lease_ms=60_000, limit=1)
    assert await store.finish(again)
    await runners.until_empty()


async def test_job_that_takes_longer_than_a_lease_keeps_its_claim_and_ends_when_it_is_lost(
    runners: Runners, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "RENEW_EVERY_S", 0.01)
    begun, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def take_long(arguments: Mapping[str, Any]) -> None:
        begun.set()
        try:
            await gate.wait()
        finally:
            ended.set()

    renewed: list[bool] = []
    renew = runners.store.renew

    async def renew_noted(job: Job, *, lease_ms: int) -> bool:
        renewed.append(await renew(job, lease_ms=lease_ms))
        return renewed[-1]

    monkeypatch.setattr(runners.store, "renew", renew_noted)
    await runners.store.add(Job(new_uuid(), "note", {"it": "x"}))
    runners.start(take_long)
    await begun.wait()
    await until(lambda: len(renewed) >= 3)
    assert all(renewed)
    await runners.store.release_all()  # as if the lease had ended while the process was suspended
    await ended.wait()
    assert not gate.is_set()
    assert not all(renewed)


async def test_what_dead_processes_held_is_given_back_and_their_attempt_counts(runners: Runners):
    await runners.store.add(Job(new_uuid(), "note", {"it": "x"}))
    await runners.store.take("a-dead-one", "note", lease_ms=60_000, limit=4)
    assert await runners.store.take("the-next", "note", lease_ms=60_000, limit=4) == []
    await runners.store.release_all()
    (again,) = await runners.store.take("the-next", "note", lease_ms=60_000, limit=4)
    assert again.attempts == 2


async def test_next_start_on_sqlite_does_at_once_what_a_dead_process_held(tmp_path: Path):
    settings = Settings.load({}, data=tmp_path, gateway_url="http://127.0.0.1:9")
    async with opened_jobs_and_store(settings) as (jobs, _):
        await jobs.add(Job(new_uuid(), TITLE_JOB, {"user_id": "local", "conversation_id": new_uuid()}))
        assert await jobs.take("a-dead-one", TITLE_JOB, lease_ms=3_600_000, limit=1)
    with closing(sqlite3.connect(tmp_path / "threadkeep.db")) as file:
        async with create_app(settings).lifespan():
            await until(lambda: file.execute(COUNT.sqlite).fetchone() == (0,))


async def test_job_that_somebody_does_is_nobody_elses(runners: Runners):
    await runners.store.add(Job(new_uuid(), "note", {"it": "x"}))
    assert len(await runners.store.take("a-runner", "note", lease_ms=60_000, limit=4)) == 1
    assert await runners.store.take("a-runner", "note", lease_ms=60_000, limit=4) == []
    await runners.store.add(Job(new_uuid(), "note", {"it": "later"}), delay_ms=60_000)
    assert await runners.store.take("a-runner", "note", lease_ms=60_000, limit=4) == []


async def test_jobs_that_a_shutdown_cut_off_are_done_at_once_by_the_next(runners: Runners):
    begun: list[Any] = []

    async def hang(arguments: Mapping[str, Any]) -> None:
        begun.append(arguments)
        await asyncio.Event().wait()

    for number in range(3):
        await runners.store.add(Job(new_uuid(), "note", {"it": number}))
    first = runners.start(hang)
    await until(lambda: len(begun) == 3)
    assert await runners.store.take("another", "note", lease_ms=60_000, limit=4) == []
    await first.close()
    taken = await runners.store.take("another", "note", lease_ms=60_000, limit=4)
    assert [job.attempts for job in taken] == [1, 1, 1]
    await runners.store.release("somebody-else")
    assert await runners.store.take("a-third", "note", lease_ms=60_000, limit=4) == []
    await runners.store.release("another")
    runners.start()
    await runners.until_empty()
    assert sorted(runners.done) == [0, 1, 2]


async def test_jobs_that_take_long_keep_none_of_another_kind_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 3600)
    read = asyncio.Event()

    async def ask_a_slow_model(arguments: Mapping[str, Any]) -> None:
        await asyncio.Event().wait()

    async def read_document(arguments: Mapping[str, Any]) -> None:
        read.set()

    jobs = Jobs(SqlJobs(database), {"title": ask_a_slow_model, "document": read_document}, Loops())
    try:
        for number in range(20):
            await jobs.add("title", {"it": number})
        await jobs.add("document", {})
        async with asyncio.timeout(PATIENCE_S):
            await read.wait()
    finally:
        await jobs.close()


async def test_many_jobs_of_one_user_hold_up_nobody_elses(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs_module, "LOOK_EVERY_S", 3600)
    done_for_others = asyncio.Event()
    begun: list[str] = []

    async def read_document(arguments: Mapping[str, Any]) -> None:
        begun.append(arguments["user_id"])
        if arguments["user_id"] == "alice":
            await asyncio.Event().wait()
        elif begun.count("bob") == 3:
            done_for_others.set()

    jobs = Jobs(SqlJobs(database), {"document": read_document}, Loops())
    try:
        for user, count in (("alice", 20), ("bob", 3)):
            for number in range(count):
                await jobs.add("document", {"it": number, "user_id": user})
        async with asyncio.timeout(PATIENCE_S):
            await done_for_others.wait()
        assert begun.count("alice") == jobs_module.MOST_RUNNING_OF_A_USER
    finally:
        await jobs.close()


async def test_jobs_of_a_kind_that_cannot_be_read_keep_no_others_from_being_done(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    store, done = SqlJobs(database), asyncio.Event()
    take = store.take

    async def take_unless_poisoned(holder: str, kind: str, **how: Any) -> Sequence[Job]:
        if kind == "poisoned":
            raise ValueError("arguments that nobody can read")
        return await take(holder, kind, **how)

    async def do(arguments: Mapping[str, Any]) -> None:
        done.set()

    monkeypatch.setattr(store, "take", take_unless_poisoned)
    monkeypatch.setattr(loops_module, "FIRST_PAUSE_S", 0.001)
    loops = Loops()
    jobs = Jobs(store, {"poisoned": do, "good": do}, loops)
    await jobs.add("good", {})
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
    await until(lambda: loops.failing == ["jobs"])
    await jobs.close()
