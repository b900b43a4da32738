"""A SQLite file for a command's small write, even while a server runs on it.

What the server keeps in memory doesn't know of it: this is for rows that are read at every use.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Literal, TypeVar

from threadkeep.domain.errors import StorageRefused, StorageUnavailable
from threadkeep.storage.database.connector import Plan, Query, Rows, single
from threadkeep.storage.database.migrate import check_migrated, migrations
from threadkeep.storage.database.sqlite import run

T = TypeVar("T")

PATIENCE_MS = 10_000


class BesideServer:
    """One connection without the lock on the folder; SQLite itself keeps two writers apart."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @staticmethod
    async def open(path: Path) -> "BesideServer":
        """Opens a file of this version; StorageRefused for another one."""
        beside = BesideServer(await asyncio.to_thread(_connect, path))
        try:
            await beside.read(lambda: check_migrated(migrations("sqlite")))
        except BaseException:
            await beside.close()
            raise
        return beside

    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement."""
        return await self.read(lambda: single(query))

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements."""
        return await asyncio.to_thread(run, self._connection, plan)

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        """Runs one writing statement."""
        return await self.write(lambda: single(query))

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        """Runs a plan in one transaction."""
        return await asyncio.to_thread(self._write, plan)

    def _write(self, plan: Callable[[], Plan[T]]) -> T:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                result = run(self._connection, plan)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise StorageUnavailable(f"The database is unavailable: {exc}.") from exc
        return result

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Yields nothing: it is open for a moment only."""
        return
        yield

    async def close(self) -> None:
        """Closes the connection."""
        await asyncio.to_thread(self._connection.close)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
    except sqlite3.Error as exc:
        raise StorageRefused(f"Couldn't open the database {path}: {exc}.") from exc
    return connection
