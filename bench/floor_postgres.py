"""The floor on PostgreSQL: one open connection of psycopg 3, one statement a commit, all prepared."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, LiteralString, cast

import psycopg
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader

from bench.data import ANSWER, MODEL, NOW, QUESTION, TOKENS, USAGE, Batch, Dataset, Rows
from bench.floor_sql import LATEST, LIST, MAIN
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, UserId, new_uuid

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

BEGIN = """WITH conversation AS (
        UPDATE tk_conversations SET last_seq = $5, message_count = $5, active_turn_id = $1, updated_at = $6,
            last_message_at = $6, tip_id = $7
        WHERE id = $2 AND last_seq = $4 - 1 AND active_turn_id IS NULL AND deleted_at IS NULL
        RETURNING id),
    turn AS (
        INSERT INTO tk_turns (id, conversation_id, user_message_id, assistant_message_id, origin, status,
            model, started_at)
        SELECT $1::uuid, id, $3::uuid, $7::uuid, 'live', 'RUNNING', $8, $6::bigint FROM conversation)
    INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content, status, model,
        parent_id, on_path, created_at, completed_at)
    SELECT $3::uuid, id, $4::bigint, $1::uuid, 'user', 'text', $9, 'COMPLETED', NULL, $10::uuid, TRUE,
        $6::bigint, $6::bigint FROM conversation
    UNION ALL
    SELECT $7::uuid, id, $5::bigint, $1::uuid, 'assistant', 'text', '', 'PENDING', $8, $3::uuid, TRUE,
        $6::bigint, NULL FROM conversation"""
END = """WITH turn AS (
        UPDATE tk_turns SET status = 'COMPLETED', usage = $1, ended_at = $2
        WHERE id = $3 AND status = 'RUNNING' RETURNING id),
    reply AS (
        UPDATE tk_messages SET status = 'COMPLETED', content = $4, token_count = $5, usage = $1, model = $6,
            completed_at = $2
        FROM turn WHERE tk_messages.id = $7)
    UPDATE tk_conversations SET active_turn_id = NULL, updated_at = $2, last_message_at = $2
    FROM turn WHERE tk_conversations.id = $8 AND active_turn_id = turn.id"""
AT_ONCE = """WITH conversation AS (
        UPDATE tk_conversations SET last_seq = $5, message_count = $5, updated_at = $6 + 1,
            last_message_at = $6 + 1, tip_id = $7
        WHERE id = $2 AND last_seq = $4 - 1 AND active_turn_id IS NULL AND deleted_at IS NULL
        RETURNING id),
    turn AS (
        INSERT INTO tk_turns (id, conversation_id, user_message_id, assistant_message_id, origin, status,
            model, usage, started_at, ended_at)
        SELECT $1::uuid, id, $3::uuid, $7::uuid, 'live', 'COMPLETED', $8, $10, $6::bigint, $6::bigint + 1
        FROM conversation)
    INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content, status,
        token_count, usage, model, parent_id, on_path, created_at, completed_at)
    SELECT $3::uuid, id, $4::bigint, $1::uuid, 'user', 'text', $9, 'COMPLETED', NULL, NULL, NULL, $13::uuid,
        TRUE, $6::bigint, $6::bigint FROM conversation
    UNION ALL
    SELECT $7::uuid, id, $5::bigint, $1::uuid, 'assistant', 'text', $11, 'COMPLETED', $12::bigint, $10, $8,
        $3::uuid, TRUE, $6::bigint, $6::bigint + 1 FROM conversation"""


@cache
def _numbered(sql: str) -> str:
    numbers = count(1)
    return "".join(f"${next(numbers)}" if character == "?" else character for character in sql)


LATEST_NUMBERED, LIST_NUMBERED, MAIN_NUMBERED = map(_numbered, (LATEST, LIST, MAIN))


class PostgresFloor:
    """One connection that is open already."""

    def __init__(self, connection: Connection, dataset: Dataset) -> None:
        self._connection = connection
        self._last_seq = {it.id: it.last_seq for it in dataset.conversations}
        self._tips = {it.id: it.tip_id for it in dataset.conversations}

    async def append(self, conversation_id: ConversationId) -> None:
        """Seven rows touched, two statements, two commits."""
        seq = self._last_seq[conversation_id] + 1
        now = NOW + seq
        turn, asked, reply = new_uuid(), new_uuid(), new_uuid()
        begun = await self._run(
            BEGIN, turn, conversation_id, asked, seq, seq + 1, now, reply, MODEL, QUESTION,
            self._tips[conversation_id],
        )  # fmt: skip
        assert begun.rowcount == 2
        ended = await self._run(END, USAGE, now + 1, turn, ANSWER, TOKENS, MODEL, reply, conversation_id)
        assert ended.rowcount == 1
        self._last_seq[conversation_id] = seq + 1
        self._tips[conversation_id] = MessageId(reply)

    async def append_at_once(self, conversation_id: ConversationId) -> None:
        """Four rows touched, one statement, one commit."""
        seq = self._last_seq[conversation_id] + 1
        turn, asked, reply = new_uuid(), new_uuid(), new_uuid()
        done = await self._run(
            AT_ONCE, turn, conversation_id, asked, seq, seq + 1, NOW + seq, reply, MODEL, QUESTION, USAGE,
            ANSWER, TOKENS, self._tips[conversation_id],
        )  # fmt: skip
        assert done.rowcount == 2
        self._last_seq[conversation_id] = seq + 1
        self._tips[conversation_id] = MessageId(reply)

    async def latest(self, conversation_id: ConversationId, limit: int) -> Sequence[object]:
        """The newest messages, as the driver's tuples."""
        return await (await self._run(LATEST_NUMBERED, conversation_id, limit)).fetchall()

    async def conversations(self, user_id: UserId, limit: int) -> Sequence[object]:
        """The first page of the list."""
        return await (await self._run(LIST_NUMBERED, user_id, limit)).fetchall()

    async def main(self, user_id: UserId, agent_id: AgentId) -> Sequence[object]:
        """The main conversation; it is there, so that looking is all there is to do."""
        return await (await self._run(MAIN_NUMBERED, user_id, agent_id)).fetchall()

    async def fetch(self, sql: str, *values: object) -> Sequence[tuple[object, ...]]:
        """Any rows."""
        return await (await self._run(_numbered(sql), *values)).fetchall()

    async def close(self) -> None:
        """Closes the connection."""
        await self._connection.close()

    async def _run(self, sql: str, *values: object) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        return await self._connection.execute(cast("LiteralString", sql), values, prepare=True)


async def connect(url: str) -> Connection:
    """A connection with ids as texts and one type of number, which is the quickest."""
    connection = await psycopg.AsyncConnection.connect(
        url, autocommit=True, cursor_factory=psycopg.AsyncRawCursor
    )
    connection.adapters.register_loader("uuid", TextLoader)
    connection.adapters.register_dumper(int, Int8Dumper)
    return connection


async def version(url: str) -> int:
    """Which PostgreSQL it is."""
    connection = await connect(url)
    async with connection:
        return connection.info.server_version // 10_000


WORD_INDEXES = """SELECT indexname, indexdef FROM pg_indexes
    WHERE schemaname = current_schema() AND indexdef LIKE '%USING gin%'"""


async def load(url: str, dataset: Rows) -> None:
    """Fills an empty, migrated database quickly."""
    connection = await connect(url)
    await connection.execute("SET session_replication_role = replica")  # no look at foreign keys
    await connection.execute("SET maintenance_work_mem = '512MB'")
    async with connection.transaction():
        # The indexes of words are made at the end, which takes a third of the time.
        found = await connection.execute(WORD_INDEXES)
        indexes = await found.fetchall()
        for name, _ in indexes:
            await connection.execute(cast("LiteralString", f"DROP INDEX {name}"))
        for batch in dataset.batches():
            await _load(connection, batch)
        for _, definition in indexes:
            await connection.execute(cast("LiteralString", definition))
    await connection.execute("VACUUM ANALYZE")  # the server does it by itself a minute later
    await connection.execute("CHECKPOINT")
    await connection.close()


async def _load(connection: Connection, batch: Batch) -> None:
    statement = f"COPY {batch.table} ({batch.names}) FROM STDIN"
    async with connection.cursor().copy(cast("LiteralString", statement)) as copy:
        for row in batch.rows:
            await copy.write_row(row)
