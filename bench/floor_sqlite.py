"""The floor on SQLite: the standard library's driver in the calling thread, as durable as Threadkeep."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.data import ANSWER, MODEL, NOW, QUESTION, TOKENS, USAGE, Batch, Dataset, Rows
from bench.floor_sql import LATEST, LIST, MAIN
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, UserId, new_uuid

ADVANCE = """UPDATE tk_conversations SET last_seq = ?, message_count = ?, active_turn_id = ?, updated_at = ?,
        last_message_at = ?, tip_id = ?
    WHERE id = ? AND last_seq = ? AND active_turn_id IS NULL AND deleted_at IS NULL"""
BEGIN_TURN = """INSERT INTO tk_turns (id, conversation_id, user_message_id, assistant_message_id, origin,
        status, model, started_at)
    VALUES (?, ?, ?, ?, 'live', 'RUNNING', ?, ?)"""
BEGIN_MESSAGES = """INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content,
        status, model, parent_id, on_path, created_at, completed_at)
    VALUES (?, ?, ?, ?, 'user', 'text', ?, 'COMPLETED', NULL, ?, TRUE, ?, ?),
        (?, ?, ?, ?, 'assistant', 'text', '', 'PENDING', ?, ?, TRUE, ?, NULL)"""
END_TURN = """UPDATE tk_turns SET status = 'COMPLETED', usage = ?, ended_at = ?
    WHERE id = ? AND status = 'RUNNING'"""
END_MESSAGE = """UPDATE tk_messages SET status = 'COMPLETED', content = ?, token_count = ?, usage = ?,
        model = ?, completed_at = ?
    WHERE id = ?"""
FREE = """UPDATE tk_conversations SET active_turn_id = NULL, updated_at = ?, last_message_at = ?
    WHERE id = ? AND active_turn_id = ?"""
WHOLE_TURN = """INSERT INTO tk_turns (id, conversation_id, user_message_id, assistant_message_id, origin,
        status, model, usage, started_at, ended_at)
    VALUES (?, ?, ?, ?, 'live', 'COMPLETED', ?, ?, ?, ?)"""
WHOLE_MESSAGES = """INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content,
        status, token_count, usage, model, parent_id, on_path, created_at, completed_at)
    VALUES (?, ?, ?, ?, 'user', 'text', ?, 'COMPLETED', NULL, NULL, NULL, ?, TRUE, ?, ?),
        (?, ?, ?, ?, 'assistant', 'text', ?, 'COMPLETED', ?, ?, ?, ?, TRUE, ?, ?)"""


class SqliteFloor:
    """One connection. Its methods are coroutines only to look like the other contenders': none waits."""

    def __init__(self, path: Path, dataset: Dataset) -> None:
        self._connection = connect(path)
        self._last_seq = {it.id: it.last_seq for it in dataset.conversations}
        self._tips = {it.id: it.tip_id for it in dataset.conversations}

    async def append(self, conversation_id: ConversationId) -> None:
        """Seven rows touched, two commits."""
        execute = self._connection.execute
        seq = self._last_seq[conversation_id] + 1
        now = NOW + seq
        turn, asked, reply = new_uuid(), new_uuid(), new_uuid()
        execute("BEGIN IMMEDIATE")
        moved = execute(ADVANCE, (seq + 1, seq + 1, turn, now, now, reply, conversation_id, seq - 1))
        assert moved.rowcount == 1
        execute(BEGIN_TURN, (turn, conversation_id, asked, reply, MODEL, now))
        user_row = (asked, conversation_id, seq, turn, QUESTION, self._tips[conversation_id], now, now)
        execute(BEGIN_MESSAGES, (*user_row, reply, conversation_id, seq + 1, turn, MODEL, asked, now))
        execute("COMMIT")
        now += 1
        execute("BEGIN IMMEDIATE")
        assert execute(END_TURN, (USAGE, now, turn)).rowcount == 1
        execute(END_MESSAGE, (ANSWER, TOKENS, USAGE, MODEL, now, reply))
        execute(FREE, (now, now, conversation_id, turn))
        execute("COMMIT")
        self._last_seq[conversation_id] = seq + 1
        self._tips[conversation_id] = MessageId(reply)

    async def append_at_once(self, conversation_id: ConversationId) -> None:
        """Four rows touched, one commit."""
        execute = self._connection.execute
        seq = self._last_seq[conversation_id] + 1
        now = NOW + seq
        turn, asked, reply = new_uuid(), new_uuid(), new_uuid()
        execute("BEGIN IMMEDIATE")
        moved = execute(ADVANCE, (seq + 1, seq + 1, None, now + 1, now + 1, reply, conversation_id, seq - 1))
        assert moved.rowcount == 1
        execute(WHOLE_TURN, (turn, conversation_id, asked, reply, MODEL, USAGE, now, now + 1))
        user_row = (asked, conversation_id, seq, turn, QUESTION, self._tips[conversation_id], now, now)
        reply_row = (reply, conversation_id, seq + 1, turn, ANSWER, TOKENS, USAGE, MODEL, asked, now, now + 1)
        execute(WHOLE_MESSAGES, (*user_row, *reply_row))
        execute("COMMIT")
        self._last_seq[conversation_id] = seq + 1
        self._tips[conversation_id] = MessageId(reply)

    async def latest(self, conversation_id: ConversationId, limit: int) -> Sequence[object]:
        """The newest messages, as the driver's tuples."""
        return self._connection.execute(LATEST, (conversation_id, limit)).fetchall()

    async def conversations(self, user_id: UserId, limit: int) -> Sequence[object]:
        """The first page of the list."""
        return self._connection.execute(LIST, (user_id, limit)).fetchall()

    async def main(self, user_id: UserId, agent_id: AgentId) -> Sequence[object]:
        """The main conversation; it is there, so that looking is all there is to do."""
        return self._connection.execute(MAIN, (user_id, agent_id)).fetchall()

    async def fetch(self, sql: str, *values: Any) -> Sequence[tuple[object, ...]]:
        """Any rows."""
        return self._connection.execute(sql, values).fetchall()

    async def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection with the same durability and the same caches as Threadkeep's."""
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    for pragma in (
        "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY",
        "cache_size = -32768",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")
    return connection


def load(path: Path, dataset: Rows) -> None:
    """Fills an empty, migrated file quickly; it is durable when this returns."""
    connection = connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA cache_size = -1000000")
    connection.execute("BEGIN IMMEDIATE")
    for batch in dataset.batches():
        _load(connection, batch)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _load(connection: sqlite3.Connection, batch: Batch) -> None:
    places = ", ".join("?" * len(batch.columns.split()))
    connection.executemany(f"INSERT INTO {batch.table} ({batch.names}) VALUES ({places})", batch.rows)
