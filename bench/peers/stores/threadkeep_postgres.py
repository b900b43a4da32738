"""Threadkeep's store on PostgreSQL, as on SQLite."""

from bench.peers.stores.threadkeep import Threadkeep


class ThreadkeepPostgres(Threadkeep):
    """This repository's store on the other database."""

    title = "Threadkeep on PostgreSQL"
    packages = ("threadkeep", "psycopg")
    database = "postgres"

    async def open(self, place: str) -> None:
        from threadkeep.storage.store import open_store

        self._url = place
        await (await open_store(self._url)).close()


CONTENDER = ThreadkeepPostgres
