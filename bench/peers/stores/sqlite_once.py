"""The floor for stores that save a turn only once its reply is complete: the same with one commit a turn."""

from bench.peers.stores.sqlite import Sqlite


class SqliteOnce(Sqlite):
    """Direct sqlite3, question and reply together."""

    title = "sqlite3, one commit a turn"

    async def append(self, conversation_id: str) -> None:
        await self._floor.append_at_once(self._ids[conversation_id])


CONTENDER = SqliteOnce
