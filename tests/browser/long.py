"""Long conversations, put into the database before the server starts."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.data import Dataset, make_conversation

from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.storage.store import open_database


def seed(data: Path, *lengths: int, branches: int = 0) -> list[str]:
    """Conversations of the user `local` with so many messages each; the last one branches. Their ids."""
    data.mkdir(parents=True, exist_ok=True)
    # In a thread of its own, for the browser's loop may be running in ours.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _migrate(f"sqlite:///{data}/threadkeep.db")).result()
    agent_id = AgentId(new_uuid())
    conversations = [
        make_conversation(UserId("local"), agent_id, length=length, age=age)
        for age, length in enumerate(lengths)
    ]
    with closing(sqlite3.connect(data / "threadkeep.db")) as database, database:
        for batch in Dataset(agent_id, conversations).batches():
            marks = ", ".join("?" * len(batch.columns.split()))
            database.executemany(f"INSERT INTO {batch.table} ({batch.names}) VALUES ({marks})", batch.rows)
        _branch(database, conversations[-1].id, lengths[-1], branches)
        database.execute("DELETE FROM tk_searchable")  # what is measured is said to be; here one looks for it
    return [it.id for it in conversations]


def _branch(database: sqlite3.Connection, conversation_id: str, length: int, branches: int) -> None:
    """Makes evenly spread questions, with their answers, earlier versions of the questions after them."""
    one = "FROM tk_messages WHERE conversation_id = :id AND seq = :seq"
    for number in range(branches):
        place = {"id": conversation_id, "seq": 1 + 2 * (number * (length // 2 - 1) // branches)}
        database.execute(
            f"""UPDATE tk_messages SET parent_id = (SELECT parent_id {one})
            WHERE conversation_id = :id AND seq = :seq + 2""",
            place,
        )
        database.execute(
            "UPDATE tk_messages SET on_path = 0 WHERE conversation_id = :id AND seq IN (:seq, :seq + 1)",
            place,
        )
    database.execute(
        "UPDATE tk_conversations SET message_count = message_count - 2 * ? WHERE id = ?",
        (branches, conversation_id),
    )


async def _migrate(url: str) -> None:
    await (await open_database(url, pool_size=1)).close()
