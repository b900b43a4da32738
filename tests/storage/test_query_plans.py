"""Each list and lookup is answered from its index, and costs as much as it returns, however much there is."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, NoReturn, cast
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tests.conftest import TEMPLATE
from tests.making import ALICE, BOB, NOW
from tests.postgres import Postgres
from threadkeep.domain.conversation import Branch, Conversation, ConversationFilter, ListedStatus
from threadkeep.domain.ids import AgentId, ConversationId, MessageId
from threadkeep.domain.message import Message, MessageRole, MessageStatus, MessageWindow
from threadkeep.domain.parts import TextPart
from threadkeep.domain.tool_call import ToolCallFilter
from threadkeep.storage import siblings as stored_siblings
from threadkeep.storage.branches import through
from threadkeep.storage.briefings import SqlBriefings
from threadkeep.storage.conversations import ConversationRows, SqlConversations
from threadkeep.storage.database.connector import Database, Plan, Query
from threadkeep.storage.file_contents import TableFileContents
from threadkeep.storage.messages import SqlMessages
from threadkeep.storage.receipts import SqlReceipts
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.siblings import Siblings, family_sizes, siblings
from threadkeep.storage.store import open_database
from threadkeep.storage.tool_calls import TOOL_CALLS_OF_MESSAGES

Insert = Callable[[str, Iterable[dict[str, object]]], None]
Find = Callable[..., Plan[object]]

LIMIT = 10
AGENTS = ("law", "code")
USERS = (ALICE, BOB, "carol")


class Asked(Exception):
    """Carries the query that the store would have run."""

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self.query = query


class Asking:
    """A database that only tells what it was asked, so that the store's own queries are the ones tested."""

    async def fetch(self, query: Query) -> NoReturn:
        raise Asked(query)

    async def read(self, plan: Callable[[], Plan[object]]) -> NoReturn:
        raise Asked(next(plan()))


@dataclass(frozen=True)
class Case:
    """A question to the store, the index that answers it, and how many rows that gives."""

    ask: Callable[[], Coroutine[Any, Any, object]]
    index: str
    returned: int = LIMIT

    def query(self) -> Query:
        with pytest.raises(Asked) as asked:
            asyncio.run(self.ask())
        return asked.value.query


@dataclass(frozen=True)
class Lookup:
    """A question to the store, and the index that answers it in each table that it reads."""

    ask: Callable[[], Coroutine[Any, Any, object]]
    indexes: Mapping[str, str]

    def query(self) -> Query:
        return Case(self.ask, "").query()


def uuid(kind: int, number: int) -> str:
    return f"{kind:08x}-0000-7000-8000-{number:012x}"


def agent_id(name: str) -> AgentId:
    return AgentId(uuid(1, AGENTS.index(name)))


def conversation_id(user: str, agent: str, number: int) -> ConversationId:
    return ConversationId(uuid(10 + USERS.index(user) * len(AGENTS) + AGENTS.index(agent), number))


LONG = conversation_id(ALICE, "law", 0)
STRAIGHT, BRANCHED = ConversationId(uuid(90, 0)), ConversationId(uuid(90, 1))
BRANCHES = 50
WIDE, FIRSTS = ConversationId(uuid(93, 0)), ConversationId(uuid(94, 0))
KINDS = {WIDE: 93, FIRSTS: 94}
MOST = 20
"""Siblings that are shown of a message, and that are read on each side of it."""


def fill(insert: Insert, scale: int) -> None:
    """Three users alike, so that two thirds of everything are other people's rows."""
    insert("tk_users", ({"id": user, "created_at": NOW} for user in USERS))
    insert(
        "tk_agents",
        (
            {
                "id": agent_id(name), "owner_id": ALICE, "name": name, "description": "",
                "primary_role_id": "assistant", "system_prompt": "", "visibility": "private",
                "settings": "{}", "is_default": False, "version": 1, "created_at": NOW, "updated_at": NOW,
            }
            for name in AGENTS
        ),
    )  # fmt: skip
    insert(
        "tk_conversations",
        (
            {
                "id": conversation_id(user, agent, number), "user_id": user, "agent_id": agent_id(agent),
                "session_id": f"{user}-{agent}-{number}",
                "status": "archived" if number % 5 == 1 else "active", "is_main": number == 0,
                "is_pinned": number % 4 == 0,
                "metadata": "{}", "last_seq": 0, "message_count": 0, "archived_to_seq": 0, "created_at": NOW,
                # Some at the same moment, so that the id decides between them, also across a page.
                "updated_at": NOW + number // 8,
                # In an order of their own: nobody deletes conversations in the order in which they began.
                "deleted_at": NOW + number * 37 % 101 if number % 7 == 3 else None,
            }
            for number in range(100 * scale) for user in USERS for agent in AGENTS
        ),
    )  # fmt: skip
    talks = [(user, conversation_id(user, agent, 0)) for user in USERS for agent in AGENTS]
    turns = [(conversation, uuid(2, where)) for where, (_, conversation) in enumerate(talks)]
    turns += [(LONG, uuid(6, number)) for number in range(100 * scale)]
    insert(
        "tk_turns",
        (
            {
                "id": turn, "conversation_id": conversation, "user_message_id": uuid(3, 0),
                "assistant_message_id": uuid(3, 0), "origin": "recorded", "status": "COMPLETED",
                "started_at": NOW,
            }
            for conversation, turn in turns
        ),
    )  # fmt: skip
    insert(
        "tk_messages",
        (
            {
                "id": uuid(30 + where, seq), "conversation_id": conversation, "seq": seq,
                "turn_id": uuid(2, where), "role": ("assistant", "user")[seq % 2],
                "content_type": "text", "content": f"{seq} " * 20, "status": "COMPLETED",
                "created_at": NOW, "tool_call_count": seq % 2,
                # Some lie on other branches.
                "on_path": seq % 10 != 0, "parent_id": uuid(30 + where, seq - 1),
            }
            for where, (_, conversation) in enumerate(talks) for seq in range(1, 100 * scale + 1)
        ),
    )  # fmt: skip
    fill_branches(insert, 1000 * scale)
    insert(
        "tk_tool_calls",
        (
            {
                "turn_id": uuid(2, where), "tool_call_id": f"{number:05}",
                "message_id": uuid(30 + where, number), "conversation_id": conversation, "user_id": user,
                "position": 0, "tool_name": ("search", "read")[number // 2 % 2], "server": "web",
                "arguments": "{}", "status": "ok", "created_at": NOW + number // 16,
            }
            for where, (user, conversation) in enumerate(talks) for number in range(1, 100 * scale, 2)
        ),
    )  # fmt: skip
    insert(
        "tk_tool_calls",
        (
            {
                "turn_id": uuid(2, where), "tool_call_id": f"role {number}",
                "message_id": uuid(30 + where, 1 + number % 9), "conversation_id": conversation,
                "user_id": user, "position": 1, "tool_name": "promptx_action", "server": "promptx",
                "arguments": "{}", "status": "ok", "created_at": NOW - 1000 + number,
            }
            for where, (user, conversation) in enumerate(talks) for number in range(1, 10 * scale + 1)
        ),
    )  # fmt: skip
    insert(
        "tk_receipts",
        ({"turn_id": turn, "conversation_id": where, "receipt": "{}"} for where, turn in turns),
    )
    insert(
        "tk_briefings",
        (
            {
                "id": uuid(5, number * len(USERS) + who), "agent_id": agent_id("law"), "user_id": user,
                "title": "t", "summary": "s", "priority": "P1", "created_at": NOW,
                "read_at": NOW if number % 4 else None,
            }
            for number in range(100 * scale) for who, user in enumerate(USERS)
        ),
    )  # fmt: skip


def fill_branches(insert: Insert, length: int) -> None:
    """As many messages twice: one after the other, and in branches of which every other one is shown."""
    insert(
        "tk_conversations",
        (
            {
                "id": id_, "user_id": "carol", "agent_id": agent_id("law"), "session_id": id_,
                "status": "active", "is_main": False, "metadata": "{}", "last_seq": length,
                "message_count": length, "archived_to_seq": 0, "created_at": NOW, "updated_at": NOW,
            }
            for id_ in (STRAIGHT, BRANCHED, WIDE, FIRSTS)
        ),
    )  # fmt: skip
    insert("tk_messages", (row for id_ in (STRAIGHT, BRANCHED) for row in branch_rows(id_, length)))
    insert("tk_messages", (row for id_ in KINDS for row in wide_rows(id_, length // 2)))


def message_row(kind: int, id_: ConversationId, seq: int, parent: int, *, on_path: bool) -> dict[str, object]:
    return {
        "id": uuid(kind, seq), "conversation_id": id_, "seq": seq, "turn_id": None, "role": "user",
        "content_type": "text", "content": "said", "status": "COMPLETED", "created_at": NOW,
        "tool_call_count": 0, "on_path": on_path, "parent_id": uuid(kind, parent) if parent > 0 else None,
    }  # fmt: skip


def branch_rows(id_: ConversationId, length: int) -> Iterator[dict[str, object]]:
    kind, part = (91, length) if id_ == STRAIGHT else (92, length // (2 * BRANCHES))
    for seq in range(1, length + 1):
        number, place = divmod(seq - 1, part)
        # What is hidden and what is shown after it follow the same message: the last one shown before.
        begins_branch = place == 0 and number % 2
        parent = seq - 1 - part if place == 0 and number and not begins_branch else seq - 1
        yield message_row(kind, id_, seq, parent, on_path=number % 2 == 0)


def wide_rows(id_: ConversationId, count: int) -> Iterator[dict[str, object]]:
    """Many answers to the first message, or many first messages."""
    for seq in range(1, count + 1):
        yield message_row(KINDS[id_], id_, seq, 1 if id_ == WIDE and seq > 1 else 0, on_path=seq == 1)


def wide_message(id_: ConversationId, seq: int) -> Message:
    """One of them."""
    ids, role, text = MessageId(uuid(KINDS[id_], seq)), MessageRole.USER, (TextPart(text="said"),)
    parent = MessageId(uuid(KINDS[id_], 1)) if id_ == WIDE and seq > 1 else None
    return Message(ids, id_, seq, None, role, text, MessageStatus.COMPLETED, NOW, parent_id=parent)


asking = cast("Database", Asking())
rows = ConversationRows(SecretBox())
conversations = SqlConversations(asking, rows, TableFileContents(asking))
messages = SqlMessages(asking, rows)
briefings = SqlBriefings(asking)
receipts = SqlReceipts(asking)


def conversations_page(
    *,
    agent: str | None = None,
    status: ListedStatus | None = None,
    pinned: bool | None = None,
    after: int | None = None,
) -> Callable[[], Coroutine[Any, Any, object]]:
    which = ConversationFilter(agent_id(agent) if agent else None, status, pinned)
    position = None if after is None else (NOW + after // 8, conversation_id(ALICE, "law", after))
    return lambda: conversations.page(ALICE, which, after=position, offset=0, limit=LIMIT)


def messages_page(window: MessageWindow) -> Callable[[], Coroutine[Any, Any, object]]:
    return lambda: messages.page(LONG, window, offset=0, limit=LIMIT)


def half_of(id_: ConversationId, **window: bool) -> Callable[[], Coroutine[Any, Any, object]]:
    """A page from the middle of a conversation, with whichever branches."""
    which = MessageWindow(after_seq=500, **window)
    return lambda: messages.page(id_, which, offset=0, limit=LIMIT)


def main_conversation() -> Coroutine[Any, Any, object]:
    return conversations.get_or_add_main(Conversation.start(ALICE, agent_id("law"), NOW, is_main=True))


def tool_calls(
    which: ToolCallFilter, before: tuple[int, str, str] | None = None
) -> Callable[[], Coroutine[Any, Any, object]]:
    return lambda: messages.tool_calls(ALICE, which, before=before, offset=0, limit=LIMIT)


AFTER = NOW + 5, uuid(2, 0), "00089"
OF_SEARCH, OF_LONG = ToolCallFilter(tool_name="search"), ToolCallFilter(conversation_id=LONG)


def briefings_page(*, unread: bool, before: str | None) -> Callable[[], Coroutine[Any, Any, object]]:
    return lambda: briefings.page(ALICE, unread=unread, before=before, limit=LIMIT)


ACTIVE, DELETED = ListedStatus.ACTIVE, ListedStatus.DELETED
BY_USER, BY_AGENT = "tk_conversations_by_user", "tk_conversations_by_agent"
DELETED_BY_USER = "tk_conversations_deleted_by_user"
BY_SEQ, ON_PATH, BY_CALL_ID = "tk_messages_by_seq", "tk_messages_on_path", "tk_tool_calls_by_id"
TOOL_CALLS = {
    "tool calls": Case(tool_calls(ToolCallFilter()), "tk_tool_calls_by_user"),
    "tool calls after a cursor": Case(tool_calls(ToolCallFilter(), AFTER), "tk_tool_calls_by_user"),
    "tool calls until a time": Case(tool_calls(ToolCallFilter(until=NOW + 4)), "tk_tool_calls_by_user"),
    "tool calls of a tool": Case(tool_calls(OF_SEARCH), "tk_tool_calls_by_tool"),
    "tool calls of a tool after a cursor": Case(tool_calls(OF_SEARCH, AFTER), "tk_tool_calls_by_tool"),
    "tool calls of a conversation": Case(tool_calls(OF_LONG), "tk_tool_calls_by_conversation"),
    "tool calls of a conversation after a cursor": Case(
        tool_calls(OF_LONG, AFTER), "tk_tool_calls_by_conversation"
    ),
}
CASES = {
    "conversations": Case(conversations_page(), BY_USER),
    "conversations after a cursor": Case(conversations_page(after=61), BY_USER),
    "conversations of a status": Case(conversations_page(status=ACTIVE), BY_USER),
    "conversations of a status after a cursor": Case(conversations_page(status=ACTIVE, after=61), BY_USER),
    "conversations of an agent": Case(conversations_page(agent="law"), BY_AGENT),
    "conversations of an agent after a cursor": Case(conversations_page(agent="law", after=61), BY_AGENT),
    "conversations of an agent of a status": Case(conversations_page(agent="law", status=ACTIVE), BY_AGENT),
    "conversations of an agent of a status after a cursor": Case(
        conversations_page(agent="law", status=ACTIVE, after=61), BY_AGENT
    ),
    "deleted conversations": Case(conversations_page(status=DELETED), DELETED_BY_USER),
    "deleted conversations after a cursor": Case(
        conversations_page(status=DELETED, after=480), DELETED_BY_USER
    ),
    "pinned conversations": Case(conversations_page(pinned=True), "tk_conversations_pinned"),
    "pinned conversations after a cursor": Case(
        conversations_page(pinned=True, after=61), "tk_conversations_pinned"
    ),
    "main conversation": Case(main_conversation, "tk_conversations_main", 1),
    "conversation": Case(lambda: conversations.get(ALICE, LONG), "tk_conversations_pkey", 1),
    "latest messages": Case(messages_page(MessageWindow(newest_first=True)), ON_PATH),
    "latest messages with the overwritten": Case(
        messages_page(MessageWindow(newest_first=True, with_overwritten=True)), BY_SEQ
    ),
    "messages before one": Case(messages_page(MessageWindow(newest_first=True, before_seq=50)), ON_PATH),
    "first messages": Case(messages_page(MessageWindow()), ON_PATH),
    "first messages with the overwritten": Case(messages_page(MessageWindow(with_overwritten=True)), BY_SEQ),
    "messages after one": Case(messages_page(MessageWindow(after_seq=50)), ON_PATH),
    "messages of a straight conversation": Case(half_of(STRAIGHT), ON_PATH),
    "messages of a branched conversation": Case(half_of(BRANCHED), ON_PATH),
    "latest messages of a branched conversation": Case(half_of(BRANCHED, newest_first=True), ON_PATH),
    "briefings": Case(briefings_page(unread=False, before=None), "tk_briefings_pkey"),
    "briefings after a cursor": Case(briefings_page(unread=False, before=uuid(5, 180)), "tk_briefings_pkey"),
    "unread briefings": Case(briefings_page(unread=True, before=None), "tk_briefings_unread"),
    "unread briefings after a cursor": Case(
        briefings_page(unread=True, before=uuid(5, 270)), "tk_briefings_unread"
    ),
}
CALLS_OF_PAGE = TOOL_CALLS_OF_MESSAGES(
    conversation_id=LONG, first=51, last=50 + 2 * LIMIT, with_overwritten=True
)
LOOKUPS = {
    "ids in use": Lookup(lambda: messages.ids_in_use(LONG, ["00001", "none"]), {"tk_tool_calls": BY_CALL_ID}),
    "tool call": Lookup(lambda: messages.tool_call(LONG, "00001"), {"tk_tool_calls": BY_CALL_ID}),
    "activated role": Lookup(
        lambda: messages.activated_role(LONG, since=0),
        {"tk_tool_calls": "tk_tool_calls_roles", "tk_messages": "tk_messages_pkey"},
    ),
    "newest receipt": Lookup(
        lambda: receipts.newest(LONG),
        {
            "tk_messages": ON_PATH,
            "tk_receipts": "tk_receipts_pkey",
            "tk_conversations": "tk_conversations_pkey",
        },
    ),
}
PASS_ROWS_ON = {"Limit", "WindowAgg", "Subquery Scan"}
"""What counts rows, or adds up their sizes, as they come from the index."""
every_lookup = pytest.mark.parametrize("lookup", LOOKUPS.values(), ids=LOOKUPS)
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def migrated(url: str) -> None:
    async def migrate() -> None:
        await (await open_database(url, pool_size=1)).close()

    asyncio.run(migrate())


def sqlite_of_scale(folder: Path, scale: int) -> sqlite3.Connection:
    migrated(f"sqlite:///{folder}/{scale}/threadkeep.db")
    connection = sqlite3.connect(folder / str(scale) / "threadkeep.db")

    def insert(table: str, rows: Iterable[dict[str, object]]) -> None:
        rows = list(rows)
        names = ", ".join(rows[0])
        marks = ", ".join(f":{name}" for name in rows[0])
        connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)

    fill(insert, scale)
    connection.commit()
    return connection


@pytest.fixture(scope="module")
def small_and_large(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """The same kind of data twice, ten times as much of it in the second."""
    folder = tmp_path_factory.mktemp("plans")
    with closing(sqlite_of_scale(folder, 1)) as small, closing(sqlite_of_scale(folder, 10)) as large:
        yield small, large


@every_case
def test_sqlite_answers_from_the_index_without_scan_or_sort(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection], case: Case
):
    for connection in small_and_large:
        (step,) = sqlite_plan(connection, case.query())
        index = re.sub("(.*)_pkey", r"sqlite_autoindex_\1_1", case.index)
        assert step.startswith("SEARCH ") and f" USING INDEX {index} (" in step


# No test measures time: docs/performance.md has the P99 of a million messages, and this keeps it flat.
@pytest.mark.requirement("004-NFR-performance-1")
@every_case
def test_sqlite_does_not_work_more_where_there_is_ten_times_as_much(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection], case: Case
):
    small, large = (sqlite_steps(connection, case.query()) for connection in small_and_large)
    assert small[1] == large[1] == case.returned
    # A few instructions more where the page begins elsewhere among those of one moment, not one row more.
    assert abs(large[0] - small[0]) <= 12
    assert large[0] <= 60 * (case.returned + 1)


def test_sqlite_reads_a_branched_conversation_as_it_reads_a_straight_one(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection],
):
    for newest_first in (False, True):
        straight, branched = (
            sqlite_steps(small_and_large[1], Case(half_of(id_, newest_first=newest_first), "").query())
            for id_ in (STRAIGHT, BRANCHED)
        )
        assert straight == branched


def test_sqlite_finds_a_branch_in_steps_that_grow_with_what_lies_after_the_fork(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection],
):
    first = MessageId(uuid(91, 1))
    small, large = (
        sum(sqlite_steps_of(connection, through(STRAIGHT, first))) for connection in small_and_large
    )
    assert large < 11 * small


def siblings_of(id_: ConversationId, *seqs: int) -> Plan[Siblings]:
    """The plan that finds the siblings of messages of a page."""
    page = [wide_message(id_, seq) for seq in seqs]
    sizes = yield from family_sizes(id_, page)
    return (yield from siblings(id_, page, sizes))


def children_of(id_: ConversationId, *seqs: int) -> Plan[Branch | None]:
    """The plan that finds the branch through the first message, whichever of the many it goes on with."""
    return through(id_, MessageId(uuid(KINDS[id_], seqs[0])))


wide_tree = pytest.mark.parametrize(
    ("find", "id_", "seqs"),
    [
        (siblings_of, WIDE, (1, 2, 3)),
        (siblings_of, WIDE, (200, 201, 202)),
        (siblings_of, FIRSTS, (1, 2, 3)),
        (siblings_of, FIRSTS, (200, 201, 202)),
        (children_of, WIDE, (1,)),
    ],
)


@wide_tree
def test_sqlite_reads_as_much_where_a_message_has_ten_times_as_many_siblings(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection],
    find: Find,
    id_: ConversationId,
    seqs: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(stored_siblings, "MOST_SIBLINGS", MOST)
    small, large = (sum(sqlite_steps_of(connection, find(id_, *seqs))) for connection in small_and_large)
    assert abs(large - small) <= 12


@pytest.mark.parametrize("mode", ["custom", "generic"])
@wide_tree
def test_postgres_reads_only_the_siblings_that_are_shown(
    large_postgres: psycopg.Connection,
    find: Find,
    id_: ConversationId,
    seqs: Sequence[int],
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(stored_siblings, "MOST_SIBLINGS", MOST)
    plan = find(id_, *seqs)
    with suppress(StopIteration):
        query = next(plan)
        while True:
            scans = [it for it in postgres_plan(large_postgres, query, mode) if "Relation Name" in it]
            for scan in scans:
                read = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
                assert read * scan["Actual Loops"] <= MOST + len(seqs) + 1, scan
            query = plan.send(postgres_rows(large_postgres, query))


def postgres_rows(connection: psycopg.Connection, query: Query) -> list[tuple[Any, ...]]:
    statement = re.sub(r"\$(\d+)", r"%(p\1)s", query.statement.postgres.replace("%", "%%"))
    values = {f"p{at}": query.values[name] for at, name in enumerate(query.statement.postgres_names, 1)}
    found = connection.execute(cast("LiteralString", statement), values).fetchall()
    return [tuple(str(it) if isinstance(it, UUID) else it for it in row) for row in found]


def sqlite_steps_of(connection: sqlite3.Connection, plan: Plan[object]) -> Iterator[int]:
    """How many instructions each query of a plan takes."""
    with suppress(StopIteration):
        query = next(plan)
        while True:
            yield sqlite_steps(connection, query)[0]
            query = plan.send(connection.execute(query.statement.sqlite, sqlite_values(query)).fetchall())


def test_sqlite_finds_the_tool_calls_of_a_page_by_its_messages(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection],
):
    small, large = (sqlite_steps(connection, CALLS_OF_PAGE) for connection in small_and_large)
    assert small == large
    assert sqlite_plan(small_and_large[1], CALLS_OF_PAGE) == [
        "SEARCH tk_tool_calls USING INDEX tk_tool_calls_by_message (message_id=?)",
        "LIST SUBQUERY 4",
        "SEARCH tk_messages USING INDEX tk_messages_by_seq (conversation_id=? AND seq>? AND seq<?)",
    ]


def sqlite_plan(connection: sqlite3.Connection, query: Query) -> list[str]:
    """The steps of a plan, but for the lookup of a move of the path, which is done once."""
    rows = connection.execute(f"EXPLAIN QUERY PLAN {query.statement.sqlite}", sqlite_values(query))
    found = {number: (before, str(detail)) for number, before, _, detail in rows}
    lookups = {it for it, (_, detail) in found.items() if detail.startswith("SEARCH tk_path_moves ")}
    lookups |= {before for it, (before, _) in found.items() if it in lookups}
    return [detail for number, (_, detail) in found.items() if number not in lookups]


def sqlite_steps(connection: sqlite3.Connection, query: Query) -> tuple[int, int]:
    """How many instructions of SQLite's machine a query takes, and how many rows it gives."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 1)
    rows = connection.execute(query.statement.sqlite, sqlite_values(query)).fetchall()
    connection.set_progress_handler(None, 1)
    return steps, len(rows)


def sqlite_values(query: Query) -> list[Any]:
    return [query.values[name] for name in query.statement.sqlite_names]


@pytest.fixture(scope="module")
def large_postgres(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.create_database(template=TEMPLATE), autocommit=True) as connection:

        def insert(table: str, rows: Iterable[dict[str, object]]) -> None:
            rows = list(rows)
            copying = sql.SQL("COPY {} ({}) FROM STDIN").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, rows[0]))
            )
            with connection.cursor().copy(copying) as copy:
                for row in rows:
                    copy.write_row(tuple(row.values()))

        fill(insert, 10)
        connection.execute("VACUUM ANALYZE")
        yield connection


@pytest.mark.requirement("004-NFR-performance-1")
@pytest.mark.parametrize("mode", ["custom", "generic"])
@every_case
def test_postgres_answers_from_the_index_and_reads_only_what_it_returns(
    large_postgres: psycopg.Connection, case: Case, mode: str
):
    nodes = list(postgres_plan(large_postgres, case.query(), mode))
    assert [node["Node Type"] for node in nodes if node["Node Type"] not in PASS_ROWS_ON] == ["Index Scan"]
    scan = nodes[-1]
    assert scan["Index Name"] == case.index
    assert nodes[0]["Actual Rows"] == scan["Actual Rows"] == case.returned
    assert scan.get("Rows Removed by Filter", 0) == 0
    # One block a row at most and the way down the index: it passes over nothing that it does not count.
    assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] <= case.returned + 8


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_postgres_finds_the_tool_calls_of_a_page_by_its_messages(
    large_postgres: psycopg.Connection, mode: str
):
    nodes = postgres_plan(large_postgres, CALLS_OF_PAGE, mode)
    scans = {node["Index Name"]: node for node in nodes if "Relation Name" in node}
    assert list(scans) == [BY_SEQ, "tk_tool_calls_by_message"]
    calls = scans["tk_tool_calls_by_message"]
    assert calls["Actual Rows"] * calls["Actual Loops"] == LIMIT


every_list_of_tool_calls = pytest.mark.parametrize("case", TOOL_CALLS.values(), ids=TOOL_CALLS)


@every_list_of_tool_calls
def test_sqlite_lists_tool_calls_from_the_index_and_looks_their_conversations_up(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection], case: Case
):
    for connection in small_and_large:
        calls, talks = sorted(sqlite_plan(connection, case.query()))
        assert f"SEARCH call USING INDEX {case.index} (" in calls
        assert "SEARCH conversation USING INDEX sqlite_autoindex_tk_conversations_1 (id=?)" in talks
    small, large = (sqlite_steps(connection, case.query()) for connection in small_and_large)
    assert small[1] == large[1] == LIMIT
    assert abs(large[0] - small[0]) <= 12


@pytest.mark.parametrize("mode", ["custom", "generic"])
@every_list_of_tool_calls
def test_postgres_lists_tool_calls_from_the_index_and_looks_their_conversations_up(
    large_postgres: psycopg.Connection, case: Case, mode: str
):
    nodes = list(postgres_plan(large_postgres, case.query(), mode))
    assert "Sort" not in {node["Node Type"] for node in nodes}
    scans = {node["Relation Name"]: node for node in nodes if "Relation Name" in node}
    assert scans["tk_tool_calls"]["Index Name"] == case.index
    assert scans["tk_tool_calls"]["Actual Rows"] == LIMIT
    assert scans["tk_conversations"]["Index Name"] == "tk_conversations_pkey"


@every_lookup
def test_sqlite_looks_up_by_index_however_much_there_is(
    small_and_large: tuple[sqlite3.Connection, sqlite3.Connection], lookup: Lookup
):
    plan = "\n".join(sqlite_plan(small_and_large[1], lookup.query()))
    found = re.findall(r" USING (?:COVERING )?INDEX (\w+)", plan)
    used = [re.sub("sqlite_autoindex_(.*)_1", r"\1_pkey", it) for it in found]
    assert sorted(used) == sorted(lookup.indexes.values())
    assert "SCAN tk_" not in plan
    small, large = (sqlite_steps(connection, lookup.query()) for connection in small_and_large)
    assert small[1] == large[1] > 0
    assert abs(large[0] - small[0]) <= 12


@pytest.mark.parametrize("mode", ["custom", "generic"])
@every_lookup
def test_postgres_looks_up_by_index_and_reads_only_what_it_needs(
    large_postgres: psycopg.Connection, lookup: Lookup, mode: str
):
    nodes = list(postgres_plan(large_postgres, lookup.query(), mode))
    scans = {node["Relation Name"]: node for node in nodes if "Relation Name" in node}
    assert {table: scan.get("Index Name") for table, scan in scans.items()} == lookup.indexes
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] <= 20


def postgres_plan(connection: psycopg.Connection, query: Query, mode: str) -> Iterator[dict[str, Any]]:
    """The steps of a plan, outermost first. A generic plan is what a long-lived connection comes to use."""
    connection.execute(cast("LiteralString", f"SET plan_cache_mode = force_{mode}_plan"))
    connection.execute(cast("LiteralString", f"PREPARE question AS {query.statement.postgres}"))
    values = [query.values[name] for name in query.statement.postgres_names]
    found = connection.execute(
        sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE question {}").format(
            sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, values))) if values else sql.SQL("")
        )
    ).fetchone()
    connection.execute("DEALLOCATE question")
    assert found
    yield from nodes_of(found[0][0]["Plan"])


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        if inner.get("Relation Name") == "tk_path_moves":  # the lookup of a move of the path
            assert inner["Actual Loops"] <= 1
        else:
            yield from nodes_of(inner)
