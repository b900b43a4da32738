"""The floor on PostgreSQL: psycopg and the best SQL for Threadkeep's own tables.

Best case by construction: one connection, prepared statements, one statement for the begin of a turn and one
for its end, each a commit of its own that waits for the disk; rows as tuples.
"""

from collections.abc import Mapping, Sequence

from bench.peers.contender import StoreContender


class Postgres(StoreContender):
    """Direct psycopg."""

    title = "psycopg, two commits a turn"
    packages = ("psycopg",)
    database = "postgres"

    async def open(self, place: str) -> None:
        from threadkeep.storage.store import open_store

        self._url = place
        await (await open_store(self._url)).close()

    async def fill(self, lengths: Mapping[str, int]) -> None:
        from bench import floor_postgres
        from bench.peers.threadkeep_rows import load, make_dataset
        from bench.sample import READER

        self._reader = READER
        dataset, self._ids = make_dataset(lengths)
        await load(self._url, dataset)
        self._floor = floor_postgres.PostgresFloor(await floor_postgres.connect(self._url), dataset)

    async def append(self, conversation_id: str) -> None:
        await self._floor.append(self._ids[conversation_id])

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        return await self._floor.latest(self._ids[conversation_id], limit)

    async def list_conversations(self, limit: int) -> Sequence[object]:
        return await self._floor.conversations(self._reader, limit)

    async def close(self) -> None:
        await self._floor.close()


CONTENDER = Postgres
