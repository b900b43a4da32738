"""The databases' own rules: they hold for whoever writes, also for a mistake of ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

import pytest

from tests.making import ALICE, BOB, NOW
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, UserId, new_uuid
from threadkeep.domain.text import BLANK_CHARACTERS
from threadkeep.storage.conversations import ConversationRows, SqlConversations
from threadkeep.storage.database.connector import Database, Query, Statement
from threadkeep.storage.file_contents import TableFileContents
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.users import SqlUsers

Values = Mapping[str, object]


@dataclass(frozen=True)
class Place:
    """Where rows belong: a user's conversation with an agent, one turn and one message in it."""

    user: UserId = ALICE
    agent: AgentId = field(default_factory=lambda: AgentId(new_uuid()))
    conversation: ConversationId = field(default_factory=lambda: ConversationId(new_uuid()))
    turn: TurnId = field(default_factory=lambda: TurnId(new_uuid()))
    message: MessageId = field(default_factory=lambda: MessageId(new_uuid()))


# One good row of each table, each after those that it refers to.
NUMBERS = count(1)
ROWS: Mapping[str, Callable[[Place], Values]] = {
    "tk_users": lambda at: {"id": at.user, "created_at": NOW},
    "tk_agents": lambda at: {
        "id": at.agent, "owner_id": at.user, "name": "n", "description": "", "primary_role_id": "assistant",
        "system_prompt": "", "visibility": "private", "settings": "{}", "is_default": False, "version": 1,
        "created_at": NOW, "updated_at": NOW,
    },
    "tk_gateways": lambda at: {
        "name": f"gateway-{new_uuid()}", "kind": "openai", "models": "[]", "version": 1, "created_at": NOW,
        "updated_at": NOW,
    },
    "tk_seen_tools": lambda at: {
        "agent_id": at.agent, "server": new_uuid(), "accepted": "0", "seen": "0",
    },
    "tk_conversations": lambda at: {
        "id": at.conversation, "user_id": at.user, "agent_id": at.agent, "session_id": new_uuid(),
        "title": "t", "title_source": "user", "status": "active", "is_main": False, "metadata": "{}",
        "last_seq": 1, "message_count": 1, "archived_to_seq": 0, "created_at": NOW, "updated_at": NOW,
    },
    "tk_creation_keys": lambda at: {
        "user_id": at.user, "idempotency_key": "k", "request_hash": "00", "conversation_id": at.conversation,
    },
    "tk_turns": lambda at: {
        "id": at.turn, "conversation_id": at.conversation, "user_id": at.user, "user_message_id": at.message,
        "assistant_message_id": at.message, "origin": "live", "status": "RUNNING", "started_at": NOW,
    },
    "tk_messages": lambda at: {
        "id": at.message, "conversation_id": at.conversation, "seq": 1, "turn_id": at.turn, "role": "user",
        "content_type": "text", "content": "c", "status": "COMPLETED", "on_path": True, "created_at": NOW,
    },
    "tk_outside_conversations": lambda at: {
        "user_id": at.user,
        "outside_id": "chat-1",
        "conversation_id": at.conversation,
    },
    "tk_outside_messages": lambda at: {
        "conversation_id": at.conversation,
        "outside_id": "message-1",
        "message_id": at.message,
    },
    "tk_feedback": lambda at: {
        "message_id": at.message, "conversation_id": at.conversation, "agent_id": at.agent, "rating": "up",
        "note": "", "share_text": False, "created_at": NOW, "updated_at": NOW,
    },
    "tk_turn_chunks": lambda at: {"turn_id": at.turn, "first_seq": 1, "last_seq": 2, "events": "[]"},
    "tk_receipts": lambda at: {"turn_id": at.turn, "conversation_id": at.conversation, "receipt": "{}"},
    "tk_prompt_texts": lambda at: {"sha256": at.turn, "text": "Be brief."},
    "tk_call_receipts": lambda at: {"turn_id": at.turn, "call": 2, "receipt": "{}"},
    "tk_receipt_texts": lambda at: {"turn_id": at.turn, "sha256": at.turn},
    "tk_tool_calls": lambda at: {
        "turn_id": at.turn, "tool_call_id": "call_1", "message_id": at.message, "user_id": at.user,
        "conversation_id": at.conversation, "position": 0, "tool_name": "search", "server": "web",
        "arguments": "{}", "status": "ok", "created_at": NOW,
    },
    "tk_approvals": lambda at: {
        "id": new_uuid(), "turn_id": at.turn, "conversation_id": at.conversation, "kind": "tool",
        "message": "m", "created_at": NOW, "expires_at": NOW,
    },
    "tk_queued": lambda at: {
        "message_id": at.message, "conversation_id": at.conversation, "position": 1, "content": "c",
        "created_at": NOW,
    },
    "tk_compactions": lambda at: {
        "id": new_uuid(), "conversation_id": at.conversation, "from_seq": 1, "to_seq": 2, "summary": "s",
        "archived_count": 2, "tokens_before": 2, "tokens_after": 1, "created_at": NOW,
    },
    "tk_compaction_progress": lambda at: {
        "conversation_id": at.conversation, "from_seq": 1, "text_count": 2, "texts_sha256": "00",
        "summary": "s", "failures": 0, "not_before": 0,
    },
    "tk_requests": lambda at: {
        "user_id": at.user, "name": "00", "request_hash": "00", "began_at": NOW,
    },
    "tk_payloads": lambda at: {
        "id": new_uuid(), "conversation_id": at.conversation, "kind": "artifact", "media_type": "text/plain",
        "size": 1, "sha256": "00", "created_at": NOW,
    },
    "tk_payload_contents": lambda at: {
        "conversation_id": at.conversation, "sha256": "00", "content": b"0", "written_at": NOW,
    },
    "tk_files": lambda at: {
        "id": at.message, "user_id": at.user, "file_name": "f", "media_type": "text/plain", "size": 1,
        "sha256": "00", "renditions": "{}", "created_at": NOW,
    },
    "tk_file_uses": lambda at: {"conversation_id": at.conversation, "file_id": at.message},
    "tk_contents": lambda at: {"id": at.turn, "user_id": at.user, "sha256": new_uuid(), "size": 1},
    "tk_content_pieces": lambda at: {"content_id": at.turn, "number": 0, "content": b"0"},
    "tk_file_forms": lambda at: {
        "id": new_uuid(), "file_id": at.message, "content_id": at.turn, "kind": "artifact",
        "media_type": "text/plain",
    },
    "tk_executions": lambda at: {
        "conversation_id": at.conversation, "run_id": "r", "event_id": "e", "type": "t", "at": NOW,
        "event": "{}",
    },
    "tk_runs": lambda at: {
        "conversation_id": at.conversation, "run_id": "r", "parts": 1, "bytes": 1, "has_start": False,
        "has_end": False,
    },
    "tk_path_moves": lambda at: {
        "conversation_id": at.conversation, "id": new_uuid(), "after_seq": 0, "to_seq": 2, "state": "left",
        "touched_at": NOW,
    },
    "tk_briefings": lambda at: {
        "id": new_uuid(), "agent_id": at.agent, "user_id": at.user, "title": "t", "summary": "s",
        "priority": "P1", "message_id": at.message, "created_at": NOW,
    },
    "tk_memories": lambda at: {
        "id": new_uuid(), "user_id": at.user, "agent_id": at.agent, "content": "c", "created_at": NOW,
    },
    "tk_documents": lambda at: {
        "id": new_uuid(), "agent_id": at.agent, "file_name": "f", "media_type": "text/plain", "size": 1,
        "sha256": "00", "status": "ready", "progress": 1.0, "chunk_count": 0, "created_at": NOW,
        "updated_at": NOW,
    },
    "tk_collections": lambda at: {"number": next(NUMBERS), "agent_id": at.agent, "user_id": at.user},
    "tk_entries": lambda at: {
        "id": next(NUMBERS), "conversation_id": at.conversation, "message_id": at.message, "terms": "t",
    },
    "tk_keys": lambda at: {
        "id": new_uuid(), "user_id": at.user, "name": "n", "prefix": "tk_", "hash": new_uuid(),
        "scopes": "[]", "is_admin": False, "may_run_programs": False, "created_at": NOW,
    },
    "tk_sessions": lambda at: {
        "id": new_uuid(), "user_id": at.user, "token_hash": new_uuid(), "way": "invitation", "device": "d",
        "created_at": NOW, "last_used_at": NOW, "ends_at": NOW,
    },
    "tk_invitations": lambda at: {
        "id": new_uuid(), "token_hash": new_uuid(), "user_id": at.user, "role": "user", "created_at": NOW,
        "expires_at": NOW,
    },
    "tk_sign_in_attempts": lambda at: {
        "state_hash": new_uuid(), "provider": "p", "browser_hash": "h", "verifier": "v", "nonce": "n",
        "next": "/", "expires_at": NOW,
    },
    "tk_sign_in_grants": lambda at: {
        "user_id": at.user, "provider": "p", "refresh_token": "k.t", "checked_at": NOW, "due_at": NOW,
    },
    "tk_shares": lambda at: {
        "id": new_uuid(), "conversation_id": at.conversation, "message_id": at.message, "hash": new_uuid(),
        "title": "", "runs": "[[1,1]]", "files": "[]", "with_tools": True, "created_at": NOW,
    },
    "tk_imports": lambda at: {
        "id": new_uuid(), "user_id": at.user, "agent_id": at.agent, "file_name": "a.zip", "size": 1,
        "status": "COMPLETED", "progress": "{}", "started_at": NOW, "noted_at": NOW,
    },
    "tk_allowances": lambda at: {"user_id": at.user, "paced_to": 0, "beginning": "{}"},
    "tk_searchable": lambda at: {"conversation_id": at.conversation, "to_seq": 1},
    "tk_ledger": lambda at: {
        "id": new_uuid(), "user_id": at.user, "agent_id": at.agent, "purpose": "turn", "model": "m",
        "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "estimated": False, "cost": 1, "currency": "USD", "turns": 1, "at": NOW, "day": "2026-11-17",
    },
    "tk_spending": lambda at: {
        "scope": "agent", "scope_id": at.agent, "period": "2026-11", "currency": "USD", "spent": 1,
        "reserved": 1,
    },
    "tk_former_spending": lambda at: {
        "name": new_uuid(), "period": "2026-11", "currency": "USD", "spent": 1,
    },
    "tk_states": lambda at: {
        "message_id": at.message, "conversation_id": at.conversation, "payload": b"{}",
    },
    "tk_step_values": lambda at: {
        "id": new_uuid(), "turn_id": at.turn, "conversation_id": at.conversation, "content": b"{}",
    },
    "tk_reservations": lambda at: {
        "id": at.turn, "user_id": at.user, "agent_id": at.agent, "purpose": "turn", "model": "m",
        "amount": 1, "currency": "USD", "held_by": "[]", "at": NOW, "day": "2026-11-17",
    },
}  # fmt: skip

# What the catalogs know: columns, foreign keys, and the first columns of indexes that hold every row.
COLUMNS = Statement(
    """SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.name GLOB 'tk_*'""",
    postgres="""SELECT table_name::text, column_name::text FROM information_schema.columns
    WHERE table_schema = 'public'""",
)
FOREIGN_KEYS = Statement(
    """SELECT t.name, k."from", k."table" FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS k
    WHERE t.type = 'table'""",
    postgres="""SELECT conrelid::regclass::text, attname::text, confrelid::regclass::text FROM pg_constraint
    JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1] WHERE contype = 'f'""",
)
INDEXED = Statement(
    """SELECT t.name, c.name FROM sqlite_master AS t, pragma_index_list(t.name) AS i,
        pragma_index_info(i.name) AS c
    WHERE t.type = 'table' AND NOT i.partial AND c.seqno = 0""",
    postgres="""SELECT indrelid::regclass::text, attname::text FROM pg_index
    JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indpred IS NULL AND indrelid::regclass::text LIKE 'tk_%'""",
)


def insert(table: str, values: Values) -> Query:
    marks = ", ".join(f":{name}" for name in values)
    return Statement(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})")(**values)


async def fill(database: Database, at: Place, *tables: str) -> None:
    for table in tables or ROWS:
        await database.execute(insert(table, ROWS[table](at)))


@pytest.fixture
async def place(database: Database) -> Place:
    """A conversation with one running turn, its message and its file."""
    place = Place()
    tables = (
        "tk_users",
        "tk_agents",
        "tk_conversations",
        "tk_turns",
        "tk_messages",
        "tk_files",
        "tk_contents",
    )
    await fill(database, place, *tables)
    return place


async def add(database: Database, table: str, at: Place, **changes: object) -> None:
    """Adds one more row of a table, like the good one but for the changes."""
    fresh = {"id": new_uuid()} if isinstance(ROWS[table](at).get("id"), str) else {}
    other = {"seq": 2} if table == "tk_messages" else {"status": "COMPLETED"} if table == "tk_turns" else {}
    await database.execute(insert(table, {**ROWS[table](at), **fresh, **other, **changes}))


async def refused(database: Database, table: str, at: Place, **changes: object) -> None:
    with pytest.raises(StorageConflict):
        await add(database, table, at, **changes)


async def test_good_row_of_each_table_is_taken(database: Database, place: Place):
    for table in [table for table in ROWS if table != "tk_users"]:
        await add(database, table, place)


async def test_unknown_words_are_refused(database: Database, place: Place):
    for table, column, word in (
        ("tk_messages", "role", "tool"),
        ("tk_messages", "role", "USER"),
        ("tk_messages", "status", "DONE"),
        ("tk_messages", "status", "completed"),
        ("tk_messages", "status", "OVERWRITTEN"),
        ("tk_messages", "content_type", "html"),
        ("tk_conversations", "status", "deleted"),
        ("tk_conversations", "title_source", "guess"),
        ("tk_turns", "status", "ABORTED"),
        ("tk_turns", "origin", "dream"),
        ("tk_agents", "visibility", "secret"),
        ("tk_tool_calls", "status", "done"),
        ("tk_briefings", "priority", "P9"),
        ("tk_payloads", "kind", "file"),
        ("tk_documents", "status", "lost"),
        ("tk_ledger", "purpose", "fun"),
        ("tk_reservations", "purpose", "fun"),
        ("tk_spending", "scope", "world"),
        ("tk_feedback", "rating", "so-so"),
        ("tk_invitations", "role", "owner"),
    ):
        await refused(database, table, place, **{column: word})


async def test_blank_text_is_refused(database: Database, place: Place):
    mixtures = ("", "  \n\t ", "\u3000\u200b\n", "\ufeff\u3000 \u2060", BLANK_CHARACTERS)
    for table, column in (
        ("tk_messages", "content"),
        ("tk_conversations", "title"),
        ("tk_agents", "name"),
        ("tk_briefings", "title"),
        ("tk_briefings", "summary"),
        ("tk_compactions", "summary"),
        ("tk_memories", "content"),
        ("tk_keys", "name"),
    ):
        for text in (*BLANK_CHARACTERS, *mixtures):
            await refused(database, table, place, **{column: text})
        await add(database, table, place, **{column: f"{BLANK_CHARACTERS}字{BLANK_CHARACTERS}"})


async def test_value_that_no_database_can_keep_is_refused(database: Database, place: Place):
    for column, value in (("content", "half a pair: \ud83d"), ("created_at", 2**63)):
        await refused(database, "tk_messages", place, **{column: value})
    await add(database, "tk_messages", place, created_at=2**63 - 1)


async def test_only_an_unfinished_reply_may_be_empty(database: Database, place: Place):
    unfinished = ("PENDING", "STREAMING", "FAILED", "CANCELLED")
    for role in ("user", "assistant", "system"):
        for status in ("COMPLETED", *(unfinished if role != "assistant" else ())):
            await refused(database, "tk_messages", place, role=role, status=status, content="")
    for seq, status in enumerate(unfinished, 2):
        await add(database, "tk_messages", place, role="assistant", status=status, content="", seq=seq)
    with pytest.raises(StorageConflict):
        await database.execute(Statement("UPDATE tk_messages SET status = 'COMPLETED' WHERE content = ''")())


async def test_users_message_with_a_file_may_be_empty(database: Database, place: Place):
    await add(database, "tk_messages", place, content="", file_count=1)
    for role in ("assistant", "system"):
        await refused(database, "tk_messages", place, role=role, content="", file_count=1, seq=3)


async def test_row_without_that_on_which_it_hangs_is_refused(database: Database, place: Place):
    keys = {(table, column) for table, column, _ in await database.fetch(FOREIGN_KEYS())}
    assert {("tk_messages", "conversation_id"), ("tk_conversations", "user_id")} <= keys
    for table, row in ROWS.items():
        for column in row(place):
            if (table, column) in keys:
                await refused(database, table, place, **{column: new_uuid()})


async def test_message_number_is_given_once(database: Database, place: Place):
    await refused(database, "tk_messages", place, seq=1)
    elsewhere = Place(agent=place.agent)
    await fill(database, elsewhere, "tk_conversations", "tk_turns", "tk_messages")


async def test_one_live_turn_runs_at_a_time(database: Database, place: Place):
    for status in ("RUNNING", "WAITING"):
        await refused(database, "tk_turns", place, status=status)
    await add(database, "tk_turns", place, status="RUNNING", origin="recorded")
    await database.execute(Statement("UPDATE tk_turns SET status = 'FAILED' WHERE origin = 'live'")())
    await add(database, "tk_turns", place, status="WAITING")
    await refused(database, "tk_turns", place, status="RUNNING")


async def test_user_has_one_main_conversation_with_an_agent(database: Database, place: Place):
    other = Place(BOB)
    await fill(database, other, "tk_users", "tk_agents")
    main = {"is_main": True}
    await add(database, "tk_conversations", place, **main)
    await refused(database, "tk_conversations", place, **main)
    await add(database, "tk_conversations", place, **main, deleted_at=NOW)
    await add(database, "tk_conversations", place, **main, user_id=BOB)
    await add(database, "tk_conversations", place, **main, agent_id=other.agent)
    await database.execute(Statement("UPDATE tk_conversations SET deleted_at = :now")(now=NOW))
    await add(database, "tk_conversations", place, **main)


async def test_one_agent_is_the_default(database: Database, place: Place):
    await add(database, "tk_agents", place, is_default=True)
    await refused(database, "tk_agents", place, is_default=True)


async def test_idempotency_key_is_used_once_in_a_conversation(database: Database, place: Place):
    elsewhere = Place(agent=place.agent)
    await fill(database, elsewhere, "tk_conversations")
    for column in ("idempotency_key", "held_key"):
        await add(database, "tk_turns", place, **{column: "k"})
        await refused(database, "tk_turns", place, **{column: "k"})
        await add(database, "tk_turns", elsewhere, **{column: "k"})


async def test_user_creates_one_conversation_with_a_key(database: Database, place: Place):
    await add(database, "tk_creation_keys", place)
    await refused(database, "tk_creation_keys", place)
    await add(database, "tk_creation_keys", place, idempotency_key="another")
    await add(database, "tk_creation_keys", place, user_id=BOB)


async def test_same_event_chunk_or_tool_call_is_kept_once(database: Database, place: Place):
    for table in ("tk_turn_chunks", "tk_tool_calls", "tk_receipts", "tk_executions", "tk_runs"):
        await add(database, table, place)
        await refused(database, table, place)


OF_PROGRAMS = {"tk_reservations.turn_id"}
"""Only of a program's model calls; what is reserved is settled, whatever becomes of the turn."""


async def counts(database: Database, columns: Mapping[str, str]) -> dict[str, int]:
    """How many rows of every table have one of these values in the column of that name."""
    found: dict[str, int] = {}
    for table, column in await database.fetch(COLUMNS()):
        if column in columns:
            counting = Statement(f"SELECT count(*) FROM {table} WHERE {column} = :value")
            ((count,),) = await database.fetch(counting(value=columns[column]))
            found[f"{table}.{column}"] = count
    return found


def of_conversation(at: Place) -> dict[str, str]:
    return {
        "conversation_id": at.conversation,
        "turn_id": at.turn,
        "message_id": at.message,
        "file_id": at.message,
        "content_id": at.turn,
    }


async def test_purge_leaves_no_row_of_the_conversation_in_any_table(database: Database):
    mine, others = Place(), Place(BOB)
    for at in (mine, others):
        await fill(database, at)
    before = await counts(database, of_conversation(mine))
    assert {where for where, number in before.items() if number == 0} == OF_PROGRAMS, (
        "ROWS lacks a table or column"
    )
    assert await SqlConversations(database, ConversationRows(SecretBox()), TableFileContents(database)).purge(
        ALICE, mine.conversation
    )
    assert set((await counts(database, of_conversation(mine))).values()) == {0}
    assert await counts(database, of_conversation(others)) == before
    # The briefing was the user's before it became a card.
    assert (await counts(database, {"user_id": ALICE}))["tk_briefings.user_id"] == 1


async def test_deleting_a_user_leaves_no_row_of_theirs_in_any_table(database: Database):
    mine, others = Place(), Place(BOB)
    for at in (mine, others):
        await fill(database, at)
    ours = {**of_conversation(mine), "user_id": ALICE, "owner_id": ALICE, "agent_id": mine.agent}
    theirs = {**of_conversation(others), "user_id": BOB, "owner_id": BOB, "agent_id": others.agent}
    before = await counts(database, theirs)
    empty = {where for where, number in (await counts(database, ours)).items() if number == 0}
    assert empty == {"tk_audit.agent_id", *OF_PROGRAMS}, "ROWS lacks a table or column"
    assert await SqlUsers(database, TableFileContents(database), b"").delete(ALICE, NOW)
    assert set((await counts(database, ours)).values()) == {0}
    assert await counts(database, theirs) == before


async def test_what_goes_with_a_conversation_or_an_agent_is_found_by_an_index(database: Database):
    indexed = {(table, column) for table, column in await database.fetch(INDEXED())}
    parents = {"tk_conversations", "tk_turns", "tk_messages", "tk_agents", "tk_documents"}
    keys = {(table, column) for table, column, to in await database.fetch(FOREIGN_KEYS()) if to in parents}
    assert keys and keys - indexed == set()
