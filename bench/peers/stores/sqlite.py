"""The floor on SQLite: the standard library's driver and the best SQL for Threadkeep's own tables.

Best case by construction: one connection in the calling thread, statements ready, write-ahead logging and
synchronous=FULL, rows as tuples. A turn takes two commits, as by everybody who keeps the question before the
model is asked.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.contender import StoreContender


class Sqlite(StoreContender):
    """Direct sqlite3."""

    title = "sqlite3, two commits a turn"

    async def open(self, place: str) -> None:
        from threadkeep.storage.store import open_store

        self._path = Path(place, "threadkeep.db")
        await (await open_store(f"sqlite:///{self._path}")).close()

    async def fill(self, lengths: Mapping[str, int]) -> None:
        from bench import floor_sqlite
        from bench.peers.threadkeep_rows import make_dataset
        from bench.sample import READER

        self._reader = READER
        dataset, self._ids = make_dataset(lengths)
        floor_sqlite.load(self._path, dataset)
        self._floor = floor_sqlite.SqliteFloor(self._path, dataset)

    async def append(self, conversation_id: str) -> None:
        await self._floor.append(self._ids[conversation_id])

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        return await self._floor.latest(self._ids[conversation_id], limit)

    async def list_conversations(self, limit: int) -> Sequence[object]:
        return await self._floor.conversations(self._reader, limit)

    async def close(self) -> None:
        await self._floor.close()


CONTENDER = Sqlite
