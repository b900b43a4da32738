"""What runs again and again reads what it looks for, however much there is that it must leave alone."""

import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString, TypeVar, cast

import psycopg
import pytest

from tests.conftest import TEMPLATE
from tests.making import (
    ALICE,
    BOB,
    NOW,
    keep_agent,
    keep_approval,
    keep_conversation,
    keep_document,
    keep_file,
    keep_receipt,
    keep_turn,
    make_receipt,
)
from tests.postgres import Postgres
from tests.storage.test_query_plans import postgres_plan, sqlite_plan, sqlite_steps
from threadkeep import Settings, create_app
from threadkeep.bootstrap import adapters
from threadkeep.bootstrap import jobs as bootstrap_jobs
from threadkeep.domain.ids import new_uuid
from threadkeep.jobs.hourly import HourlyJob
from threadkeep.storage import (
    approvals,
    conversations,
    history,
    receipts,
    turn_log,
    users,
)
from threadkeep.storage.database.connector import Database, Plan, Query, Rows, Statement
from threadkeep.storage.documents import chunk_index
from threadkeep.storage.jobs import Job, SqlJobs
from threadkeep.storage.store import Store
from threadkeep.storage.turns import LEASE_MS

T = TypeVar("T")

ROWS = 100_000
ROWS_OF_NARROW = 330_000
"""PostgreSQL would rather walk over a smaller table than look up the hundred rows that it expects.

Together, that is more than a million and a half rows that nothing may touch.
"""
NARROW = {"tk_turn_chunks", "tk_prompt_texts", "tk_receipt_texts"}
MUCH_LATER = NOW * 2
MOST_STEPS, MOST_BLOCKS = 3_000, 60
"""A walk over one table would take ten times as many."""

# These read much and write nothing, so that nobody waits for them: they find what a stopped node left undone.
READ_EVERYTHING = {history.BEHIND, chunk_index.WAITING, users.AFTER}


class Recording:
    """A database that notes what it is asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect = database.dialect
        self.queries: list[Query] = []

    async def fetch(self, query: Query) -> Rows:
        self.queries.append(query)
        return await self._database.fetch(query)

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        return await self._database.read(lambda: self._noted(plan()))

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        self.queries.append(query)
        return await self._database.execute(query, urgent=urgent, apart=apart)

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        return await self._database.write(lambda: self._noted(plan()))

    def listen(self, channel: str) -> AsyncGenerator[str]:
        return self._database.listen(channel)

    async def close(self) -> None:
        await self._database.close()

    def _noted(self, plan: Plan[T]) -> Plan[T]:
        try:
            query = next(plan)
            while True:
                self.queries.append(query)
                query = plan.send((yield query))
        except StopIteration as stop:
            return cast("T", stop.value)


class Captured:
    """Takes the place of the hourly loop: keeps its jobs, and runs none of them by itself."""

    steps: dict[str, HourlyJob]

    def __init__(self, steps: dict[str, HourlyJob], *_: object) -> None:
        Captured.steps = steps

    async def close(self) -> None: ...


async def leave_something(store: Store, database: Database) -> None:
    """Something to remove for every step."""
    run = database.execute
    agent, gone, ownerless, orphan = [
        await keep_agent(store, name=it) for it in ("a", "gone", "none", "left")
    ]
    deleted, kept = [await keep_conversation(store, agent) for _ in range(2)]
    deleted = await keep_turn(store, deleted, "q", "a")
    ((turn, _),) = await store.turns.begun_after(deleted.id, 0, limit=1)
    await keep_receipt(store, turn, make_receipt(), {"a" * 64: "text"})
    await store.conversations.delete(ALICE, deleted.id, NOW)
    kept = await keep_turn(store, kept, "q", "a")
    ((turn, _),) = await store.turns.begun_after(kept.id, 0, limit=1)
    await keep_approval(store, kept.id, turn.id, "Call it?")
    await keep_document(store, agent.id, "words", ready=False)
    await keep_document(store, gone.id, "words")
    await run(Statement("UPDATE tk_agents SET deleted_at = 1 WHERE id = :id")(id=gone.id))
    for it in (ownerless, orphan):
        await run(Statement("UPDATE tk_agents SET owner_id = NULL WHERE id = :id")(id=it.id))
    await run(Statement("UPDATE tk_agents SET deleted_at = 1 WHERE id = :id")(id=orphan.id))
    await keep_conversation(store, ownerless, BOB)
    await keep_file(store)
    await SqlJobs(database).add(Job(new_uuid(), "title", {"user_id": ALICE}))


async def periodic_queries(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, list[Query]], Rows]:
    """What each step asks the database, and the logs that are left."""
    recordings: list[Recording] = []
    opened = adapters.open_timed

    async def record(*given: Any) -> Recording:
        recordings.append(Recording(await opened(*given)))
        return recordings[-1]

    monkeypatch.setattr(adapters, "open_timed", record)
    monkeypatch.setattr(bootstrap_jobs, "Hourly", Captured)
    monkeypatch.setattr(adapters, "system_clock", lambda: MUCH_LATER)
    app = create_app(
        Settings.load(
            {}, data=folder, database_url=url, secret_key="k" * 32, jwt_secret="s" * 32, embedding_url="off"
        )
    )
    async with app.lifespan():
        store = (await app.services()).store
        (recording,) = recordings
        database = cast("Database", recording)
        await leave_something(store, database)
        asked: dict[str, list[Query]] = {}
        for name, step in [*Captured.steps.items(), *loops(store, database).items()]:
            recording.queries = []
            await step()
            asked[name] = [*recording.queries]
        return asked, await database.fetch(Statement("SELECT 1 FROM tk_turn_chunks")())


def loops(store: Store, database: Database) -> dict[str, HourlyJob]:
    """What nodes ask every few seconds."""

    def step(ask: Callable[[], Any]) -> HourlyJob:
        async def run() -> None:
            await ask()

        return run

    jobs = SqlJobs(database)
    return {
        "abandoned turns": step(lambda: store.log.abandoned("node", alone=False, limit=10)),
        "abandoned turns, alone": step(lambda: store.log.abandoned("node", alone=True, limit=10)),
        "leases": step(lambda: store.log.renew("node", [], LEASE_MS)),
        "expired requests": step(lambda: store.approvals.expired(MUCH_LATER, limit=10)),
        "due jobs": step(lambda: jobs.take("node", "title", lease_ms=1, limit=1)),
        "due jobs for others": step(lambda: jobs.take("node", "title", lease_ms=1, limit=1, not_for=["bob"])),
    }


def bystanders(series: str, number: str, uuid: str) -> Iterator[str]:
    """Inserts of what nothing may touch: ended turns, kept conversations, answered requests, and so on."""
    old, young = 1, MUCH_LATER
    for table, values in {
        "tk_conversations": {
            "id": uuid, "user_id": "'alice'", "agent_id": uuid, "session_id": uuid, "session_hash": uuid,
            "status": "'active'", "is_main": "FALSE", "metadata": "'{}'", "last_seq": 0, "message_count": 0,
            "archived_to_seq": 0, "created_at": old, "updated_at": old,
            "deleted_at": f"CASE WHEN {number} % 2 = 0 THEN {young} END",
        },
        "tk_turns": {
            "id": uuid, "conversation_id": uuid, "user_message_id": uuid, "assistant_message_id": uuid,
            "origin": "'live'", "status": "'COMPLETED'", "started_at": old,
            "ended_at": f"CASE WHEN {number} % 2 = 0 THEN {young} ELSE {old} END",
            "has_log": f"{number} % 2 = 0",
        },
        "tk_turn_chunks": {"turn_id": uuid, "first_seq": 1, "last_seq": 1, "events": "''"},
        "tk_approvals": {
            "id": uuid, "turn_id": uuid, "conversation_id": uuid, "kind": "'tool'", "message": "''",
            "created_at": old, "expires_at": old, "answered_at": old,
        },
        "tk_prompt_texts": {"sha256": f"CAST({uuid} AS text)", "text": "''"},
        "tk_receipt_texts": {"turn_id": uuid, "sha256": f"CAST({uuid} AS text)"},
        "tk_agents": {
            "id": uuid, "owner_id": "'alice'", "name": "'n'", "description": "''", "primary_role_id": "'r'",
            "system_prompt": "''", "visibility": "'private'", "settings": "'{}'", "is_default": "FALSE",
            "version": 1, "created_at": old, "updated_at": old, "deleted_at": old, "is_cleared": "TRUE",
        },
        "tk_documents": {
            "id": uuid, "agent_id": uuid, "file_name": "'f'", "media_type": "'m'", "size": 1, "sha256": "'s'",
            "status": "'ready'", "progress": 1, "chunk_count": 0, "created_at": old, "updated_at": old,
        },
        "tk_files": {
            "id": uuid, "user_id": "'alice'", "file_name": "'f'", "media_type": "'m'", "size": 1,
            "sha256": "'s'", "renditions": "'{}'", "created_at": old,
            "unsent_since": f"CASE WHEN {number} % 2 = 0 THEN {young} END",
        },
        "tk_jobs": {
            "id": uuid, "kind": "'another'", "arguments": f"CAST({number} AS text)", "attempts": 0,
            "run_at": old, "created_at": old,
        },
    }.items():  # fmt: skip
        names, given = ", ".join(values), ", ".join(str(it) for it in values.values())
        rows = ROWS_OF_NARROW if table in NARROW else ROWS
        yield series.format(rows=rows, into=f"INSERT INTO {table} ({names})", select=f"SELECT {given}")


@pytest.fixture
def database_of_bystanders(sqlite_template: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    file = Path(shutil.copy(sqlite_template, tmp_path / "large.db"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        uuid = "printf('00000000-0000-7000-8000-%012x', i)"
        for statement in bystanders(f"{numbers} {{into}} {{select}} FROM n", "i", uuid):
            connection.execute(statement)
        yield connection


def check(problems: Sequence[str]) -> None:
    assert not problems, "\n".join(problems)


def distinct(asked: dict[str, list[Query]]) -> Iterator[tuple[str, Query]]:
    """Each statement once, with the name of its step."""
    seen: set[Statement] = set(READ_EVERYTHING)
    for name, queries in asked.items():
        for query in queries:
            if query.statement not in seen:
                seen.add(query.statement)
                yield name, query


async def test_sqlite_reads_only_what_it_looks_for(
    database_of_bystanders: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    connection = database_of_bystanders
    asked, logs = await periodic_queries(f"sqlite:///{tmp_path}/small/threadkeep.db", tmp_path, monkeypatch)
    assert not logs
    problems: list[str] = []
    for name, query in distinct(asked):
        connection.execute("BEGIN")
        steps, _ = sqlite_steps(connection, query)
        connection.execute("ROLLBACK")
        if steps > MOST_STEPS:
            plan = sqlite_plan(connection, query)
            problems.append(f"{name}: {steps} steps: {query.statement.sqlite}\n{plan}")
    check(problems)


async def test_postgres_reads_only_what_it_looks_for(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.create_database(template=TEMPLATE)
    asked, logs = await periodic_queries(url, tmp_path, monkeypatch)
    assert not logs
    problems: list[str] = []
    with psycopg.connect(postgres.create_database(template=TEMPLATE), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no row asks for another
        series = "{into} {select} FROM generate_series(1, {rows}) AS i"
        uuid = "CAST('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0') AS uuid)"
        for statement in bystanders(series, "i", uuid):
            connection.execute(cast("LiteralString", statement))
        connection.execute("VACUUM ANALYZE")
        for name, query in distinct(asked):
            for mode in ("custom", "generic"):
                with connection.transaction(force_rollback=True):
                    top, *_ = nodes = list(postgres_plan(connection, query, mode))
                blocks = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
                if blocks > MOST_BLOCKS:
                    kinds = [(it["Node Type"], it.get("Index Name")) for it in nodes]
                    problems.append(f"{name}, {mode}: {blocks} blocks: {query.statement.postgres}\n{kinds}")
    check(problems)


async def test_cleanup_removes_everything_though_a_little_at_a_time(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
):
    for module, name in (
        (turn_log, "TRIMMED_AT_ONCE"),
        (conversations, "CONVERSATIONS_AT_ONCE"),
        (receipts, "LET_GO_AT_ONCE"),
        (approvals, "CLOSED_AT_ONCE"),
        (users, "SWEPT_AT_ONCE"),
    ):
        monkeypatch.setattr(module, name, 2)
    agent = await keep_agent(store)
    for number in range(5):
        other = await keep_agent(store, name=f"{number}")
        await database.execute(
            Statement("UPDATE tk_agents SET owner_id = NULL, deleted_at = 1 WHERE id = :id")(id=other.id)
        )
        talk = await keep_turn(store, await keep_conversation(store, agent), "q", "a")
        ((turn, _),) = await store.turns.begun_after(talk.id, 0, limit=1)
        await keep_receipt(store, turn, make_receipt(), {f"{number:064}": "text"})
        await keep_approval(store, talk.id, turn.id, "Call it?")
        await store.conversations.delete(ALICE, talk.id, NOW)
    assert await store.approvals.close_of_ended(MUCH_LATER) == 5
    assert await store.log.trim(NOW + 1) == 0
    assert await store.log.trim(NOW + 2) == 10
    purged = [len(await store.conversations.purge_deleted_before(NOW + 1)) for _ in range(4)]
    assert purged == [2, 2, 1, 0]
    await store.receipts.forget_texts()
    await store.users.sweep(NOW)
    for table, count in (("tk_prompt_texts", 0), ("tk_let_go_texts", 0), ("tk_agents", 1), ("tk_turns", 0)):
        assert [*await database.fetch(Statement(f"SELECT COUNT(*) FROM {table}")())] == [(count,)]
