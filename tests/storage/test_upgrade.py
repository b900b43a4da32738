"""A database of version 1 opened by this one: nothing is lost, whenever the process is killed."""

import asyncio
import logging
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from tests.postgres import Postgres
from tests.storage.old_database import copy_to_postgres, counts_of, old_messages, restore_version_1
from threadkeep import Settings
from threadkeep.bootstrap import opened_jobs_and_store
from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import Part, TextPart, ToolCallPart
from threadkeep.domain.turn import TurnStatus
from threadkeep.log.rebuilding import rebuild
from threadkeep.log.replies import written_so_far
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.store import Store
from threadkeep.storage.database.backup import back_up
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import Migration, migrations
from threadkeep.storage.store import open_database, open_snapshot, open_store, store_on

LOCAL = UserId("local")
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Old:
    """A database of version 1, and how many rows each of its tables has."""

    url: str
    file: Path
    counts: Mapping[str, int]
    schema: str | None = None


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    """A database of version 1, once of each kind."""
    file = restore_version_1(tmp_path / "data")
    counts = counts_of(file)
    if request.param == "sqlite":
        return Old(f"sqlite:///{file}", file, counts)
    server: Postgres = request.getfixturevalue("postgres")
    url = server.create_database()
    copy_to_postgres(file, url)
    return Old(url, file, counts)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches of replies, however few there are."""
    monkeypatch.setattr("threadkeep.storage.old_messages.BATCH", 4)


async def upgraded(old: Old) -> Database:
    return await open_database(old.url, schema=old.schema, pool_size=2, rebuild=rebuild)


async def kept_messages(store: Store) -> list[Message]:
    """Every message, in the order of the recorded ones."""
    ids = dict.fromkeys(ConversationId(it["conversation_id"]) for it in old_messages())
    window = MessageWindow(with_overwritten=True)
    return [it for id_ in ids for it in await store.messages.page(id_, window, offset=0, limit=999)]


async def by_name(store: Store, database: Database) -> dict[str, list[Message]]:
    """The messages of each conversation by its agent's name."""
    rows = await database.fetch(
        Statement(
            """SELECT agent.name, conversation.id FROM tk_conversations AS conversation
            JOIN tk_agents AS agent ON agent.id = conversation.agent_id ORDER BY conversation.id"""
        )()
    )
    window = MessageWindow(with_overwritten=True)
    return {name: [*await store.messages.page(id_, window, offset=0, limit=999)] for name, id_ in rows}


def shown(message: Message) -> dict[str, Any]:
    """A message as version 1 gave it, but for what may change: blank lines, and how long tools took."""
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "seq": message.seq,
        "turn_id": message.turn_id,
        "role": message.role,
        "content": text if message.content_type == "text" else plain(message.content),
        "status": message.shown_status,
        "created_at": message.created_at,
        "completed_at": message.completed_at,
        "thought_process": [timeless(plain(it)) for it in message.thought_process],
        "citations": plain(message.citations),
        "artifact_ids": list(message.artifact_ids),
        "tool_calls": [without_new(plain(it)) for it in message.tool_calls],
        "token_count": message.token_count,
        "usage": uncached(plain(message.usage)),
        "model": message.model,
        "error": plain(message.error),
    }


def uncached(usage: Json | None) -> Json | None:
    """What was counted before prompt caches were."""
    return usage and {name: it for name, it in usage.items() if not name.startswith("cache_")}


def plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def shown_before(message: Json) -> dict[str, Any]:
    steps = [timeless(it) for it in message["thought_process"]]
    if not any(it["kind"] == "tool" for it in steps):  # tools of other products had no steps
        steps += [step_of(it) for it in message["tool_calls"]]
    return {**message, "thought_process": steps}


def timeless(step: Json) -> dict[str, Any]:
    return {**step, "duration_ms": None} if step["kind"] == "tool" else dict(step)


def step_of(call: Json) -> dict[str, Any]:
    return {
        "kind": "tool",
        "title": call["tool_name"],
        "detail": call["error"] or "",
        "started_at": call["created_at"],
        "duration_ms": None,
        "tool_call_id": call["tool_call_id"],
    }


def without_new(call: Json) -> dict[str, Any]:
    return {name: it for name, it in call.items() if name not in {"artifact_ids", "model_name"}}


async def check_messages(store: Store) -> None:
    for now, before in zip(await kept_messages(store), old_messages(), strict=True):
        assert shown(now) == shown_before(before)


async def check(old: Old) -> None:
    """Opens the database and compares all that is in it with what was."""
    database = await upgraded(old)
    try:
        store = await store_on(database)
        await check_messages(store)
        versions = await database.fetch(Statement("SELECT version FROM tk_migrations ORDER BY version")())
        known = migrations(database.dialect)
        assert [it for (it,) in versions] == [it.version for it in known]
        for table, count in old.counts.items():
            found = await database.fetch(Statement(f"SELECT count(*) FROM {table}")())
            assert (table, found[0][0]) == (table, len(known) if table == "tk_migrations" else count)
        with pytest.raises(Exception, match="tk_messages_before"):
            await database.fetch(Statement("SELECT 1 FROM tk_messages_before")())
    finally:
        await database.close()
    if database.dialect == "sqlite":
        with closing(sqlite3.connect(old.file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.usefixtures("small_batches")
async def test_every_row_is_kept_and_every_message_shows_what_it_showed(old: Old):
    await check(old)
    await check(old)  # and at the next start


def parts_of(message: Message) -> list[tuple[int, str, str]]:
    """Each part with its model call, its kind and a word of it."""
    return [(part.iteration, part.type, word_of(part)) for part in message.parts]


def word_of(part: Part) -> str:
    if isinstance(part, ToolCallPart):
        return part.call.tool_name
    words = (getattr(part, name, None) for name in ("text", "query", "code", "file_name"))
    return next(it for it in words if it is not None)


async def test_reply_whose_log_is_kept_gets_its_parts_in_the_order_in_which_they_came(old: Old):
    database = await upgraded(old)
    _, reply, _, added, _, searched, *_ = (await by_name(await store_on(database), database))["Tools"]
    await database.close()
    assert parts_of(reply) == [
        (0, "notice", "MCP_SERVER_UNAVAILABLE"),
        (1, "thought", "I need numbers."),
        (1, "text", "Let me see the numbers first."),
        (1, "tool_call", "add"),
        (1, "tool_call", "big"),
        (2, "thought", "Now the handbook."),
        (2, "text", "Now I check the handbook."),
        (2, "tool_call", "broken"),
        (2, "tool_call", "file"),
        (2, "tool_call", "chart"),
        (3, "text", "Revenue grew by 3 %. 你好 🌱"),
    ]
    # Only the blank lines between the calls of the model are new.
    assert reply.content == (
        "Let me see the numbers first.\n\nNow I check the handbook.\n\nRevenue grew by 3 %. 你好 🌱"
    )
    assert [len(it.artifact_ids) for it in reply.tool_calls] == [0, 0, 0, 2, 0]
    assert [kind for _, kind, _ in parts_of(added)] == ["notice", "tool_call", "tool_call", "text"]
    assert parts_of(searched)[1:] == [
        (1, "tool_call", "look"),
        (1, "retrieval", "tea"),
        (2, "text", "Found some."),
        (2, "tool_call", "recall"),
        (2, "tool_call", "look"),
        (2, "retrieval", "likes"),
        (2, "retrieval", "tea"),
        (3, "thought", "Enough."),
        (3, "text", "The law says so [1]."),
    ]


async def test_reply_whose_log_is_gone_keeps_its_text_as_one_part_after_its_steps(old: Old):
    database = await upgraded(old)
    messages = await by_name(await store_on(database), database)
    await database.close()
    _, reply, _, _, _, searched, *_ = messages["Tools, log trimmed"]
    assert [it for it in parts_of(reply) if it[1] != "file"] == [
        (0, "notice", "MCP_SERVER_UNAVAILABLE"),
        (1, "thought", "I need numbers."),
        (1, "tool_call", "add"),
        (1, "tool_call", "big"),
        (2, "thought", "Now the handbook."),
        (2, "tool_call", "broken"),
        (2, "tool_call", "file"),
        (2, "tool_call", "chart"),
        (3, "text", "Let me see the numbers first.Now I check the handbook.Revenue grew by 3 %. 你好 🌱"),
    ]
    assert [word for _, kind, word in parts_of(reply) if kind == "file"] == ["a.csv", "b.txt"]
    assert [word for _, kind, word in parts_of(searched) if kind == "retrieval"] == ["tea", "likes", "tea"]
    _, recorded, *_ = messages["Recorded"]
    assert parts_of(recorded) == [
        (1, "thought", "looked into the contract"),
        (1, "tool_call", "search"),
        (2, "thought", ""),
        (2, "retrieval", ""),
        (2, "file", ""),
        (3, "text", "违约金为 20% [1]。"),
    ]


async def test_conversations_become_trees_whose_path_is_what_was_shown(old: Old):
    database = await upgraded(old)
    store = await store_on(database)
    for messages in (await by_name(store, database)).values():
        path = [it for it in messages if it.on_path]
        before = {it.id: path[: path.index(it)][-1:] for it in path}
        for message in messages:
            turn = await store.turns.get(LOCAL, message.turn_id) if message.turn_id else None
            if message.role is MessageRole.ASSISTANT and turn is not None:
                assert message.parent_id == turn.user_message_id
                assert message.on_path or message.status == turn.status
            elif message.on_path:
                assert [message.parent_id or ""] == [it.id for it in before[message.id]] or message is path[0]
        conversation = await store.conversations.get(LOCAL, messages[0].conversation_id)
        assert conversation is None or conversation.tip_id == path[-1].id
    main = (await by_name(store, database))["Overwritten"]
    assert [(it.seq, it.on_path, it.status) for it in main[3:6]] == [
        (4, False, "COMPLETED"), (5, False, "FAILED"), (6, False, "COMPLETED"),
    ]  # fmt: skip
    await database.close()


async def test_turn_that_was_left_behind_still_runs_and_has_its_log(old: Old):
    database = await upgraded(old)
    store = await store_on(database)
    *_, reply = (await by_name(store, database))["Running"]
    assert await store.turns.status(TurnId(reply.turn_id or "")) is TurnStatus.RUNNING
    assert (await written_so_far(store.log, reply)).content == "I look it up.\n\nIt is "
    await database.close()


# Interruptions

KILLED = """
import asyncio, os, signal, sys
from threadkeep.log.rebuilding import rebuild
from threadkeep.storage import old_messages
from threadkeep.storage.store import open_database

url, text, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
old_messages.BATCH = 4

def look(query):
    global number
    if text in query.statement.postgres:
        number -= 1
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)

if url.startswith("sqlite"):
    from threadkeep.storage.database import sqlite
    rows = sqlite._rows
    def run(connection, query):
        look(query)
        return rows(connection, query)
    sqlite._rows = run
else:
    from threadkeep.storage.database import postgres
    run_one = postgres._run
    async def run(connection, query):
        look(query)
        return await run_one(connection, query)
    postgres._run = run

asyncio.run(open_database(url, pool_size=1, rebuild=rebuild))
"""
POINTS = {
    "before the first change": ("CREATE TABLE tk_messages_before", 1),
    "when the tips are found": ("UPDATE tk_conversations SET tip_id", 1),
    "when the last index is made": ("CREATE INDEX tk_tool_calls_roles", 1),
    "before the migration is remembered": ("INSERT INTO tk_migrations", 1),
    "before the first batch": ("FROM tk_messages_before ORDER BY id", 1),
    "within the first batch": ("UPDATE tk_messages SET content", 3),
    "at the end of a batch": ("DELETE FROM tk_messages_before", 2),
    "between two batches": ("FROM tk_messages_before ORDER BY id", 4),
    "before the table is dropped": ("DROP TABLE tk_messages_before", 1),
}


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
async def test_migration_that_is_killed_goes_on_at_the_next_start(old: Old, point: tuple[str, int]):
    command = [sys.executable, "-c", KILLED, old.url, point[0], str(point[1])]
    killed = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    await check(old)


@pytest.mark.usefixtures("small_batches")
async def test_commands_that_read_refuse_a_database_that_is_not_migrated_whole(old: Old):
    for _ in range(2):
        with pytest.raises(StorageRefused, match="Start this version's server once"):
            await open_snapshot(old.url)
        with pytest.raises(StorageRefused, match="Start this version's server once"):
            await open_store(old.url)  # nobody told it how to make parts of replies
    await check(old)


@pytest.mark.usefixtures("small_batches")
async def test_nodes_that_start_together_migrate_once(tmp_path: Path, postgres: Postgres):
    file = restore_version_1(tmp_path / "data")
    old = Old(postgres.create_database(), file, counts_of(file))
    copy_to_postgres(file, old.url)
    opened = await asyncio.gather(*(upgraded(old) for _ in range(4)))
    for database in opened:
        await database.close()
    await check(old)


async def test_tables_in_a_schema_of_their_own_are_migrated_there(tmp_path: Path, postgres: Postgres):
    file = restore_version_1(tmp_path / "data")
    old = Old(postgres.create_database(), file, counts_of(file), schema="threads")
    copy_to_postgres(file, old.url, schema="threads")
    await check(old)
    with psycopg.connect(old.url) as connection:
        beside = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert beside == []


# The copy


def copies_in(folder: Path) -> list[Path]:
    return list(folder.glob("*before*"))


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


async def test_database_is_copied_beside_itself_before_it_is_migrated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = restore_version_1(tmp_path / "data")
    old = Old(f"sqlite:///{file}", file, counts_of(file))
    with sqlite3.connect(file) as unfinished:  # what is still in the log beside the file is copied too
        unfinished.execute("PRAGMA journal_mode = WAL")
        unfinished.execute("INSERT INTO tk_meta VALUES ('last', 'word')")
    copy = file.with_name("threadkeep.db.before-0002")
    with caplog.at_level(logging.INFO):
        await (await upgraded(old)).close()
    unfinished.close()
    assert str(copy) in caplog.text
    assert copy.stat().st_mode & 0o777 == 0o600
    assert counts_of(copy) == {**old.counts, "tk_meta": old.counts["tk_meta"] + 1}
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT version FROM tk_migrations").fetchall() == [(1,)]
    caplog.clear()
    written = copy.stat().st_mtime_ns
    await (await upgraded(old)).close()
    assert copy.stat().st_mtime_ns == written and not caplog.text
    assert copies_in(copy.parent) == [copy]
    # It is a backup itself, and in no other.
    back_up(file.parent, tmp_path / "backup.tar")
    assert b"before-0002" not in (tmp_path / "backup.tar").read_bytes()


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("table", ["tk_users", "tk_agents", "tk_conversations", "tk_turns", "tk_messages"])
async def test_rows_that_refer_to_one_deleted_by_hand_are_kept_and_the_operator_reads_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str
):
    file = restore_version_1(tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:  # in which foreign keys are off
        connection.execute(f"DELETE FROM {table}")
    counts = counts_of(file)
    database = await open_database(f"sqlite:///{file}", pool_size=1, rebuild=rebuild)
    await database.close()
    expected = {**counts, "tk_migrations": len(migrations("sqlite"))}
    assert {name: count for name, count in counts_of(file).items() if name in counts} == expected
    assert f"refer to missing rows of {table}" in caplog.text


async def test_migration_that_would_lose_rows_is_undone_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = restore_version_1(tmp_path)
    before = counts_of(file)
    first, *others, last = migrations("sqlite")
    careless = last._replace(statements=(*last.statements, Statement("DELETE FROM tk_turns")))

    def changed(dialect: str) -> list[Migration]:
        return [first, *others, careless]

    monkeypatch.setattr("threadkeep.storage.database.sqlite.migrations", changed)
    with pytest.raises(StorageRefused, match=r"rolled back: .* missing rows of tk_turns.* Continue with"):
        await open_database(f"sqlite:///{file}", pool_size=1, rebuild=rebuild)
    assert counts_of(file) == before


async def test_new_database_is_not_copied(tmp_path: Path):
    await (await open_database(f"sqlite:///{tmp_path}/threadkeep.db")).close()
    assert not copies_in(tmp_path)


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` tells."""

    total: int
    used: int
    free: int


def nearly_full(_: Path) -> DiskUsage:
    return DiskUsage(total=10**9, used=10**9 - 10**6, free=10**6)


async def test_disk_without_room_is_told_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = restore_version_1(tmp_path / "data")
    before = dump(file)
    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with pytest.raises(StorageRefused, match=r"takes 2 MB on the disk .* 1 MB are free\. Free up space"):
        await open_database(f"sqlite:///{file}", rebuild=rebuild)
    assert dump(file) == before
    assert not copies_in(file.parent)


async def test_copy_that_fails_leaves_the_database_as_it_was(tmp_path: Path):
    file = restore_version_1(tmp_path / "data")
    before = dump(file)
    (file.parent / "threadkeep.db.before-0002.partial").mkdir()
    with pytest.raises(StorageRefused, match=r"couldn't be copied .* Nothing was changed"):
        await open_database(f"sqlite:///{file}", rebuild=rebuild)
    assert dump(file) == before


# Whole


def structure(url: str) -> Sequence[object]:
    """Columns, constraints and indexes, in whatever order they were made."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            rows = connection.execute("SELECT type, name, replace(sql, '\"', '') FROM sqlite_master")
            return sorted(rows.fetchall(), key=str)
    with psycopg.connect(url) as connection:
        queries = (
            """SELECT table_name, column_name, data_type, is_nullable, column_default
            FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2""",
            """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        )
        return [connection.execute(query).fetchall() for query in queries]


async def test_migrated_database_is_built_as_a_new_one_is(
    old: Old, request: pytest.FixtureRequest, tmp_path: Path
):
    fresh = f"sqlite:///{tmp_path}/fresh/threadkeep.db"
    if not old.url.startswith("sqlite"):
        server: Postgres = request.getfixturevalue("postgres")
        fresh = server.create_database()
    await (await open_database(fresh)).close()
    await (await upgraded(old)).close()
    assert structure(old.url) == structure(fresh)


async def test_commands_and_server_migrate_by_themselves(tmp_path: Path):
    file = restore_version_1(tmp_path / "data")
    settings = Settings.load({}, data=file.parent, embedding_url="off")
    async with opened_jobs_and_store(settings) as (_, store):
        await check_messages(store)
