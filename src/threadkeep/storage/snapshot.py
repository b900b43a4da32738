"""A database as it is at one moment, for reading only, also while a server runs on it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast

from threadkeep.domain.errors import StorageError, StorageRefused
from threadkeep.storage.database import Plan, Query, Rows, single
from threadkeep.storage.migrate import check_migrated, migrations
from threadkeep.storage.sqlite import run

T = TypeVar("T")


class Snapshot:
    """One reading transaction, which stays open: those who write go on, and it sees nothing of that."""

    def __init__(
        self,
        dialect: Literal["sqlite", "postgres"],
        drive: Callable[[Plan[Any]], Awaitable[Any]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._dialect: Literal["sqlite", "postgres"] = dialect
        self._drive = drive
        self._close = close

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which database it is."""
        return self._dialect

    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement."""
        return await self._drive(single(query))

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements."""
        return cast("T", await self._drive(plan()))

    async def execute(self, query: Query) -> NoReturn:
        """Nothing is written."""
        raise StorageRefused("A snapshot is for reading only.")

    async def write(self, plan: Callable[[], Plan[T]]) -> NoReturn:
        """Nothing is written."""
        raise StorageRefused("A snapshot is for reading only.")

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Nothing happens within a moment."""
        return
        yield

    async def close(self) -> None:
        """Ends the transaction and lets go of the database."""
        await self._close()


async def sqlite_snapshot(path: Path) -> Snapshot:
    """A SQLite file at this moment; the lock on its folder may be another process's."""
    connection = await asyncio.to_thread(_begin, path)

    async def drive(plan: Plan[Any]) -> Any:
        return await asyncio.to_thread(run, connection, lambda: plan)

    async def close() -> None:
        await asyncio.to_thread(connection.close)

    return Snapshot("sqlite", drive, close)


def _begin(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise StorageRefused(f"There is no database in {path.parent}; name the data folder with --data.")
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=30,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("BEGIN")
        run(connection, lambda: check_migrated(migrations("sqlite")))
    except (sqlite3.Error, StorageError) as exc:
        if connection is not None:
            connection.close()
        if isinstance(exc, StorageRefused):
            raise
        raise StorageRefused(f"The database {path} cannot be read: {exc}.") from exc
    return connection
