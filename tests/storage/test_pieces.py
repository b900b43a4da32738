"""Imports, forks and purges are small transactions: others write in between, and a crash leaves nothing."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import pytest

from tests.executing import executions_on
from tests.making import (
    ALICE,
    BOB,
    NOW,
    keep_agent,
    keep_artifact,
    keep_conversation,
    keep_document,
    keep_feedback,
    keep_file,
    keep_memory,
    keep_receipt,
    keep_turn,
    make_compaction,
    make_receipt,
)
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation, ConversationFilter, ListedStatus, WholeConversation
from threadkeep.domain.errors import StorageConflict, StorageUnavailable
from threadkeep.domain.execution import MOST_PARTS, ExecutedTool, ExecutionEvent, ExecutionEventType
from threadkeep.domain.ids import ConversationId, new_uuid
from threadkeep.domain.message import MessageWindow
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.user import User
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import ForeignCall, ForeignConversation, ForeignMessage, ForeignText
from threadkeep.imports.ids import ImportIds
from threadkeep.storage import purging
from threadkeep.storage.database import pieces
from threadkeep.storage.database.connector import Database, Plan, Query, Rows, Statement, single
from threadkeep.storage.executions import RecordedRun
from threadkeep.storage.imports import writing
from threadkeep.storage.imports.writing import WritingStopped
from threadkeep.storage.store import Store, store_on, store_reading

T = TypeVar("T")

AT_ONCE = 6
"""Rows of a transaction in these tests."""
BESIDE = 4
"""Rows that a piece changes besides: its holder, the conversation, what counts for the user."""
PAIRS = 8
LONG_AGO = 1_000
WORDS = b"The ferry leaves at noon."


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROWS_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pieces, "AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pieces, "FIRST_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(pieces, "SLOW_S", 60)


class Pieces:
    """A database that counts the rows of each transaction; it can end before one, as if it were killed."""

    def __init__(self, database: Database, *, ends_before: int | None = None) -> None:
        self._database = database
        self._left = ends_before
        self.dialect: Literal["sqlite", "postgres"] = database.dialect
        self.rows: list[int] = []

    async def fetch(self, query: Query) -> Rows:
        return await self._database.fetch(query)

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        return await self._database.read(plan)

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        return await self.write(lambda: single(query))

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        if self._left is not None:
            if self._left <= 0:
                raise StorageUnavailable("The process was killed.")
            self._left -= 1
        count = 0

        def counted() -> Plan[T]:
            nonlocal count
            count = 0
            steps = plan()
            try:
                query = next(steps)
                while True:
                    rows = yield query
                    count += len(rows) * query.statement.sqlite.startswith(("INSERT", "UPDATE", "DELETE"))
                    query = steps.send(rows)
            except StopIteration as stop:
                return stop.value

        result = await self._database.write(counted)
        self.rows.append(count)
        return result

    def listen(self, channel: str) -> Any:
        return self._database.listen(channel)

    async def close(self) -> None:
        await self._database.close()


class Contended(Pieces):
    """A database in which each transaction is first the victim of a deadlock."""

    is_victim = False

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        self.is_victim = not self.is_victim
        if self.is_victim:
            raise StorageConflict("The database chose this transaction to end a deadlock.")
        return await super().write(plan, urgent=urgent, heavy=heavy)


def whole(agent: Agent, name: str = "c") -> WholeConversation:
    """A conversation with calls, values that are stored beside it, and a file."""
    messages: list[ForeignMessage] = []
    for number in range(PAIRS):
        before = f"a{number - 1}" if number else None
        call = ForeignCall("look", {"n": number}, "x" * 20_000 + str(number))
        messages += [
            ForeignMessage(f"q{number}", True, (ForeignText(f"When, {number}?"),), NOW, follows=before),
            ForeignMessage(f"a{number}", False, (call, ForeignText("Noon.")), NOW, follows=f"q{number}"),
        ]
    found = ForeignConversation("other", name, "Ferries", NOW, NOW, tuple(messages), messages[-1].id)
    made, _ = convert_conversation(found, ALICE, agent.id, NOW, {})
    file = Payload.of(WORDS, made.conversation.id, PayloadKind.FILE, "text/plain", NOW, file_name="a.txt")
    part = FilePart(file_id=file.id, file_name="a.txt", media_type="text/plain", size=file.size)
    first = replace(made.messages[0], parts=(*made.messages[0].parts, part))
    return replace(made, messages=[first, *made.messages[1:]], payloads=[*made.payloads, file])


def content_of(made: WholeConversation) -> Callable[[Payload], bytes]:
    """Any bytes: only files are read again."""
    return lambda payload: WORDS if payload.file_name else b"x" * payload.size


async def keep_rich(store: Store, agent: Agent) -> Conversation:
    """A conversation with something of nearly everything."""
    conversation = await keep_conversation(store, agent)
    for number in range(PAIRS):
        conversation = await keep_turn(store, conversation, f"When, {number}?", "Noon.")
        turn = await store.turns.get(ALICE, (await latest(store, conversation)).turn_id)
        assert turn
        await keep_receipt(store, turn, make_receipt(), {f"{number}" * 64: f"text {number}"})
    await keep_feedback(store, conversation)
    await keep_artifact(store, conversation.id)
    await store.compactions.add(make_compaction(conversation.id, 1, 2))
    while await store.history.follow(conversation.id, limit=100):
        pass
    return conversation


async def latest(store: Store, conversation: Conversation) -> Any:
    (message,) = await store.messages.page(
        conversation.id, MessageWindow(newest_first=True), offset=0, limit=1
    )
    return message


OWN_TABLES = (
    "tk_conversations", "tk_messages", "tk_turns", "tk_turn_chunks", "tk_tool_calls", "tk_payloads",
    "tk_payload_contents", "tk_files", "tk_file_forms", "tk_file_uses", "tk_contents", "tk_compactions",
    "tk_feedback", "tk_receipts", "tk_receipt_texts", "tk_prompt_texts", "tk_entries", "tk_searchable",
    "tk_executions", "tk_runs",
)  # fmt: skip


async def left_in(database: Database) -> dict[str, int]:
    """How many rows tables have that have any."""
    counts = {it: await database.fetch(Statement(f"SELECT COUNT(*) FROM {it}")()) for it in OWN_TABLES}
    return {table: rows[0][0] for table, rows in counts.items() if rows[0][0]}


async def clean_up(store: Store) -> None:
    """What the next start and the cleanup after it do."""
    await store.conversations.let_all_go()
    while await store.conversations.purge_left():
        pass
    for user_id in await store.users.half_deleted():
        await store.users.delete(user_id, NOW)


async def shown(store: Store, id_: ConversationId) -> list[object]:
    """All that a user can see of a conversation."""
    deleted = ConversationFilter(status=ListedStatus.DELETED)
    return [
        it
        for it in (
            await store.conversations.get(ALICE, id_),
            await store.messages.page_of(ALICE, id_, MessageWindow(), offset=0, limit=9),
            await store.conversations.restore(ALICE, id_),
            *await store.conversations.page(ALICE, ConversationFilter(), after=None, offset=0, limit=9),
            *await store.conversations.page(ALICE, deleted, after=None, offset=0, limit=9),
            *await store.files.page(ALICE, after=None, newest_first=True, limit=9),
            *await store.history.search(ALICE, "noon", before=None, limit=9),
        )
        if it is not None
    ]


Act = Callable[[Store, Any], Awaitable[object]]


async def import_it(store: Store, made: WholeConversation) -> None:
    id_, is_there = await ImportIds(store, ALICE).find("conversation", made.conversation.id, ALICE)
    assert not is_there and id_ == made.conversation.id
    await store.whole_conversations.add(made, content_of(made))


async def fork_it(store: Store, made: WholeConversation) -> None:
    """A copy, as a fork writes it: the pages come from the original."""
    async with store.whole_conversations.forking(made.conversation, ConversationId(new_uuid())) as fork:
        half = len(made.messages) // 2
        await fork.add(replace(made, messages=made.messages[:half]))
        await fork.add(replace(made, turns=(), payloads=(), messages=made.messages[half:]))


@pytest.mark.parametrize("write", [import_it, fork_it])
async def test_conversation_is_written_in_pieces_that_a_crash_leaves_invisible(
    write: Act, database: Database
):
    store = await store_on(database)
    made = whole(await keep_agent(store))
    counting = Pieces(database)
    pieces = await store_on(counting)
    counting.rows.clear()
    await write(pieces, made)
    count = len(counting.rows)
    assert max(counting.rows) <= AT_ONCE + BESIDE < count
    full = await left_in(database)
    messages = await store.messages.page(made.conversation.id, MessageWindow(), offset=0, limit=100)
    assert len(messages) == len(made.messages) == 2 * PAIRS
    assert await store.conversations.purge(ALICE, made.conversation.id)
    assert await left_in(database) == {}
    for at in range(1, count):
        killed = await store_with(Pieces(database, ends_before=at))
        with pytest.raises(StorageUnavailable):
            await write(killed, made)
        assert await shown(store, made.conversation.id) == []
        if at % 2:  # the same import again finds what is left of the first
            await import_it(store, made)
            assert {**await left_in(database)} == full or write is fork_it
            assert await store.conversations.purge(ALICE, made.conversation.id)
        else:
            await clean_up(store)
        assert await left_in(database) == {}, at


async def store_with(pieces: Pieces) -> Store:
    """A store on a database that is in use: opening it writes nothing."""
    return await store_reading(pieces)


async def purge_one(store: Store, conversation: Conversation) -> None:
    assert await store.conversations.purge(ALICE, conversation.id)


async def purge_expired(store: Store, conversation: Conversation) -> None:
    await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.conversations.purge_deleted_before(NOW + 1) == [conversation.id]


async def delete_user(store: Store, conversation: Conversation) -> None:
    assert await store.users.delete(ALICE, NOW)


@pytest.mark.parametrize("purge", [purge_one, purge_expired, delete_user])
async def test_purge_goes_in_pieces_and_is_finished_after_a_crash(purge: Act, database: Database):
    store = await store_on(database)
    agent = await keep_agent(store, BOB)
    counting = Pieces(database)
    conversation = await keep_rich(store, agent)
    await purge(await store_with(counting), conversation)
    assert await left_in(database) == {}
    count = len(counting.rows)
    assert max(counting.rows) <= AT_ONCE + 2 * BESIDE < count
    for at in range(2 if purge is purge_expired else 1, count):
        conversation = await keep_rich(store, agent)
        with pytest.raises(StorageUnavailable):
            await purge(await store_with(Pieces(database, ends_before=at)), conversation)
        if purge is not delete_user:
            assert await shown(store, conversation.id) == []
        await clean_up(store)
        assert await left_in(database) == {}, at


async def test_deleting_a_user_is_made_of_small_transactions(database: Database):
    store = await store_on(database)
    agent = await keep_agent(store)
    for number in range(3 * AT_ONCE):
        await keep_conversation(store, agent)
        await keep_memory(store, agent.id, f"Fact {number}")
        await keep_file(store, words=f"file {number}")
    await keep_document(store, agent.id, *(f"passage {number} about ferries" for number in range(AT_ONCE)))
    counting = Pieces(database)
    assert await (await store_with(counting)).users.delete(ALICE, NOW)
    assert max(counting.rows) <= max(AT_ONCE, purging.CONVERSATIONS_AT_ONCE) + BESIDE
    assert await left_in(database) == {}
    assert not await database.fetch(Statement("SELECT id FROM tk_users WHERE id = :id")(id=ALICE))


@pytest.mark.parametrize("purge", [purge_one, delete_user])
async def test_purge_goes_on_after_a_deadlock_in_each_of_its_transactions(purge: Act, database: Database):
    store = await store_on(database)
    agent = await keep_agent(store)
    conversation = await keep_rich(store, agent)
    await keep_memory(store, agent.id, "Alice takes the ferry.")
    in_audit = Statement("SELECT COUNT(*) FROM tk_audit WHERE actor_id = :id")
    contended = Contended(database)
    await purge(await store_with(contended), conversation)
    assert contended.rows and await left_in(database) == {}
    ((named,),) = await database.fetch(in_audit(id=ALICE))
    assert bool(named) is (purge is not delete_user)


async def test_others_write_between_the_pieces(database: Database):
    store = await store_on(database)
    agent = await keep_agent(store)
    made = whole(agent)
    counting = Pieces(database)
    importing = asyncio.create_task(import_it(await store_with(counting), made))
    waited: list[int] = []
    while not importing.done():
        before = len(counting.rows)
        await keep_conversation(store, agent, user=BOB)
        waited.append(len(counting.rows) - before)
    await importing
    assert len(waited) > 3
    # PostgreSQL has no queue of writes: pieces are stored beside others' writes.
    assert database.dialect == "postgres" or max(waited) <= 3


def run(parts: int) -> list[list[ExecutionEvent]]:
    """A run of another engine with as many parts, in requests of 1,000 events at most."""
    tool = ExecutedTool("look", {"at": "the sea"}, result="x" * 50)
    node = partial(
        ExecutionEvent, type=ExecutionEventType.NODE_COMPLETED, run_id="r", node="n", tools=(tool,)
    )
    nodes = [node(f"{number}", at=NOW + number) for number in range(parts // 2)]
    ends = [
        ExecutionEvent("start", ExecutionEventType.STARTED, "r", NOW - 1, input="When?"),
        ExecutionEvent("end", ExecutionEventType.COMPLETED, "r", NOW + parts, output="Noon."),
    ]
    return [*(nodes[at : at + 1000] for at in range(0, len(nodes), 1000)), ends]


async def record_run(store: Store, conversation: Conversation, parts: int = 4) -> Sequence[RecordedRun]:
    """Records all of a run; returns what the last request was answered."""
    executions = executions_on(store)
    found: Sequence[RecordedRun] = ()
    for events in run(parts):
        found = await executions.record(User(ALICE), conversation.id, events)
    return found


async def test_largest_run_of_another_engine_is_written_in_two_transactions_within_its_limit(
    database: Database,
):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    counting = Pieces(database)
    ((_, turn_id),) = [
        (it.run_id, it.turn_id)
        for it in await record_run(await store_with(counting), conversation, MOST_PARTS)
    ]
    (adding, ending, recording) = counting.rows
    events, calls = MOST_PARTS // 2 + 2, MOST_PARTS // 2
    assert (adding, ending) == (calls + 2, 2 + 2)
    logged = len(await store.log.read(cast("Any", turn_id), 0))
    assert recording <= events + calls + logged + 2 * BESIDE
    reply = await latest(store, conversation)
    assert len(reply.tool_calls) == calls
    assert await store.conversations.purge(ALICE, conversation.id)
    assert await left_in(database) == {}


@pytest.mark.parametrize("goes_on", ["the engine repeats its last request", "the cleanup finishes it"])
async def test_crash_between_a_runs_events_and_its_turn_loses_nothing(goes_on: str, database: Database):
    store = await store_on(database)
    conversation = await keep_conversation(store, await keep_agent(store))
    for at in range(3):
        killed = await store_with(Pieces(database, ends_before=at))
        with pytest.raises(StorageUnavailable):
            await record_run(killed, conversation)
        assert not await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=9)
    executions = executions_on(store)
    if goes_on == "the cleanup finishes it":
        await executions.finish_left()
    else:
        await executions.record(User(ALICE), conversation.id, run(4)[-1])
    messages = await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=9)
    assert [it.text for it in messages] == ["When?", "Noon."]
    ((_, turn_id),) = [(it.run_id, it.turn_id) for it in await record_run(store, conversation)]
    assert turn_id == messages[0].turn_id
    assert len(await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=9)) == 2
    left = await left_in(database)
    assert not left.keys() & {"tk_executions", "tk_runs"}


async def test_stopped_import_leaves_nothing_to_see(database: Database):
    store = await store_on(database)
    made = whole(await keep_agent(store))
    for most in range(6):
        left = iter(range(most))
        with pytest.raises(WritingStopped):
            await store.whole_conversations.add(
                made, content_of(made), goes_on=lambda left=left: next(left, None) is not None
            )
        assert await shown(store, made.conversation.id) == []
        await import_it(store, made)
        assert await store.conversations.purge(ALICE, made.conversation.id)
    assert await left_in(database) == {}


async def test_writer_whose_conversation_another_one_took_over_changes_nothing(database: Database):
    store = await store_on(database)
    made = whole(await keep_agent(store))
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        async with store.whole_conversations.forking(made.conversation, ConversationId(new_uuid())) as fork:
            await fork.add(replace(made, messages=made.messages[:2]))
            reached.set()
            await go_on.wait()
            await fork.add(replace(made, turns=(), payloads=(), messages=made.messages[2:]))

    first = asyncio.create_task(slow())
    await reached.wait()
    await import_it(store, made)
    kept = await left_in(database)
    go_on.set()
    with pytest.raises(StorageConflict):
        await first
    assert await left_in(database) == kept
    assert await store.conversations.get(ALICE, made.conversation.id)


async def test_deleting_the_user_ends_the_writing(database: Database):
    store = await store_on(database)
    made = whole(await keep_agent(store, BOB))
    half = len(made.messages) // 2
    with pytest.raises(StorageConflict):
        async with store.whole_conversations.forking(made.conversation, ConversationId(new_uuid())) as fork:
            await fork.add(replace(made, messages=made.messages[:half]))
            assert await store.users.delete(ALICE, NOW)
            await fork.add(replace(made, turns=(), payloads=(), messages=made.messages[half:]))
    assert await left_in(database) == {}
    assert not await database.fetch(Statement("SELECT id FROM tk_users WHERE id = :id")(id=ALICE))


async def test_user_whose_deletion_goes_on_counts_as_deleted(database: Database):
    store = await store_on(database)
    await keep_rich(store, await keep_agent(store, BOB))
    with pytest.raises(StorageUnavailable):
        await (await store_with(Pieces(database, ends_before=2))).users.delete(ALICE, LONG_AGO)
    begun = await store.users.standing(ALICE)
    assert begun.deleted_at > LONG_AGO  # as of now: who signs in meanwhile is refused, too
    assert await store.users.half_deleted() == [ALICE]
    await clean_up(store)
    assert (await store.users.standing(ALICE)).deleted_at == NOW
    assert await store.users.half_deleted() == []


BY_THE_PLAN = {"tk_turn_chunks", "tk_receipts", "tk_receipt_texts", "tk_call_receipts", "tk_file_uses"}
FEW_OF_A_USER = {
    "tk_allowances", "tk_collections", "tk_imports", "tk_keys", "tk_reservations", "tk_agents",
    "tk_sessions", "tk_sign_in_grants",
    "tk_contents",  # with the files
}  # fmt: skip
FEW_OF_AN_AGENT = {"tk_collections", "tk_seen_tools"}


def test_every_table_is_purged_before_a_cascade_could(sqlite_template: Path):
    with closing(sqlite3.connect(sqlite_template)) as connection:
        tables = [it for (it,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        keys = {
            (row[2], table)
            for table in tables
            for row in connection.execute(f"SELECT * FROM pragma_foreign_key_list('{table}')")
            if row[6] == "CASCADE"
        }
    of_conversations = {*purging.OF_CONVERSATIONS} | BY_THE_PLAN
    for parent in ("tk_conversations", "tk_turns", "tk_messages", "tk_receipts"):
        assert {table for of, table in keys if of == parent} <= of_conversations, parent
    of_users = {*purging.OF_USERS} | of_conversations | FEW_OF_A_USER | {"tk_conversations", "tk_files"}
    assert {table for of, table in keys if of == "tk_users"} <= of_users
    of_agents = {*purging.OF_AGENTS} | FEW_OF_AN_AGENT | {"tk_conversations"}
    assert {table for of, table in keys if of == "tk_agents"} <= of_agents
