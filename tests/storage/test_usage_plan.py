"""What is asked of usage and turns reads what is meant: a user's calls of some days, and turns that run."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import LiteralString, cast

import psycopg
import pytest

from tests.conftest import TEMPLATE
from tests.making import ALICE, NOW
from tests.postgres import Postgres
from tests.storage.test_query_plans import (
    Asked,
    asking,
    migrated,
    postgres_plan,
    sqlite_plan,
)
from threadkeep.domain.ledger import UsageFilter
from threadkeep.storage.database.connector import Query
from threadkeep.storage.running.active_turns import SqlActiveTurns
from threadkeep.storage.spending.ledger import SqlLedger

BY_USER = "SEARCH tk_ledger USING INDEX tk_ledger_user (user_id=? AND day>? AND day<?)"
HOUR = 60 * 60 * 1000
USERS = 20
TURNS_OF_EACH = 500
DAYS_READ = 30


def question() -> Query:
    with pytest.raises(Asked) as asked:
        which = UsageFilter("2026-10-19", "2026-11-17", ALICE)
        asyncio.run(SqlLedger(asking, b"").usage(which, ["day"]))
    return asked.value.query


def test_sqlite_reads_only_ones_own_calls_of_these_days(tmp_path: Path):
    migrated(f"sqlite:///{tmp_path}/threadkeep.db")
    with closing(sqlite3.connect(tmp_path / "threadkeep.db")) as connection:
        plan = sqlite_plan(connection, question())
    assert plan[0] == BY_USER
    assert not [step for step in plan if step.startswith("SCAN")]


def run(connection: psycopg.Connection, text: str) -> None:
    connection.execute(cast("LiteralString", text))


@pytest.fixture(scope="module")
def large_postgres(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.create_database(template=TEMPLATE), autocommit=True) as connection:
        run(
            connection,
            f"""INSERT INTO tk_users SELECT CASE n WHEN 1 THEN 'alice' ELSE 'user ' || n END, {NOW}
            FROM generate_series(1, {USERS}) AS n""",
        )
        run(
            connection,
            f"""INSERT INTO tk_agents (id, name, description, primary_role_id, system_prompt, visibility,
                settings, is_default, version, created_at, updated_at)
            VALUES (gen_random_uuid(), 'n', '', 'r', '', 'public', '{{}}', TRUE, 1, {NOW}, {NOW})""",
        )
        run(
            connection,
            f"""INSERT INTO tk_conversations (id, user_id, agent_id, session_id, status, is_main, metadata,
                last_seq, message_count, archived_to_seq, created_at, updated_at)
            SELECT gen_random_uuid(), tk_users.id, tk_agents.id, tk_users.id, 'active', FALSE, '{{}}', 0, 0,
                0, {NOW}, {NOW} FROM tk_users, tk_agents""",
        )
        run(
            connection,
            f"""INSERT INTO tk_turns (id, conversation_id, user_id, user_message_id, assistant_message_id,
                origin, status, started_at)
            SELECT gen_random_uuid(), it.id, it.user_id, it.id, it.id, 'live', 'COMPLETED',
                {NOW} + (n - 100) * {HOUR}::bigint
            FROM generate_series(0, {TURNS_OF_EACH - 1}) AS n, tk_conversations AS it""",
        )
        run(
            connection,
            f"""INSERT INTO tk_ledger (id, user_id, purpose, input_tokens, output_tokens, cache_read_tokens,
                cache_write_tokens, estimated, turns, at, day)
            SELECT gen_random_uuid(), tk_users.id, 'turn', 1, 1, 0, 0, FALSE, 1, {NOW},
                to_char(DATE '2026-11-17' - n, 'YYYY-MM-DD')
            FROM generate_series(0, {TURNS_OF_EACH - 1}) AS n, tk_users ORDER BY random()""",
        )
        connection.execute("VACUUM ANALYZE")
        yield connection


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_postgres_reads_only_ones_own_calls_of_these_days(large_postgres: psycopg.Connection, mode: str):
    nodes = postgres_plan(large_postgres, question(), mode)
    (calls,) = [node for node in nodes if "tk_ledger_user" in node.get("Index Name", "")]
    assert calls["Actual Rows"] * calls["Actual Loops"] == DAYS_READ
    assert calls.get("Rows Removed by Filter", 0) == 0


def active() -> Query:
    with pytest.raises(Asked) as asked:
        asyncio.run(SqlActiveTurns(asking).page(after=None, offset=0, limit=20))
    return asked.value.query


def test_sqlite_reads_only_active_turns(tmp_path: Path):
    migrated(f"sqlite:///{tmp_path}/threadkeep.db")
    with closing(sqlite3.connect(tmp_path / "threadkeep.db")) as connection:
        plan = sqlite_plan(connection, active())
    running, waiting = (step for step in plan if "tk_turns" in step)
    # Both indexes that it may take hold only those that run.
    assert running in {f"SCAN tk_turns USING INDEX tk_turns_{it}" for it in ("leases", "running_of_user")}
    assert "USING INDEX tk_turns_waiting_by_age" in waiting


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_postgres_reads_only_active_turns(large_postgres: psycopg.Connection, mode: str):
    nodes = list(postgres_plan(large_postgres, active(), mode))
    running, waiting = (node["Index Name"] for node in nodes if node.get("Relation Name") == "tk_turns")
    # All of them hold only those that run.
    assert running in {"tk_turns_leases", "tk_turns_active", "tk_turns_running_of_user"}
    assert waiting in {"tk_turns_waiting_by_age", "tk_turns_waiting"}
