"""Long conversations, put into the database before the server starts."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.data import Dataset, make_conversation

from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.storage.store import open_database


def seed(data: Path, *lengths: int) -> list[str]:
    """Conversations of the user `local` with so many messages each; their ids."""
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
        database.execute("DELETE FROM tk_searchable")  # what is measured is said to be; here one looks for it
    return [it.id for it in conversations]


async def _migrate(url: str) -> None:
    await (await open_database(url, pool_size=1)).close()
