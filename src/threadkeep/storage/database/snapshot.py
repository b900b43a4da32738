"""A database as of one moment, read-only, even while a server runs on it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast

from threadkeep.domain.errors import StorageRefused, StorageUnavailable
from threadkeep.storage.database.connector import Plan, Query, Rows, single
from threadkeep.storage.database.sqlite import run

T = TypeVar("T")


class Snapshot:
    """One open read transaction: writers continue, and it sees none of their changes."""

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

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> NoReturn:
        """A snapshot is read-only."""
        raise StorageRefused("A snapshot is read-only.")

    async def write(
        self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False
    ) -> NoReturn:
        """A snapshot is read-only."""
        raise StorageRefused("A snapshot is read-only.")

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Yields nothing: a snapshot never changes."""
        return
        yield

    async def close(self) -> None:
        """Ends the transaction and closes the database."""
        await self._close()


async def sqlite_snapshot(path: Path, *, leave_no_trace: bool = False) -> Snapshot:
    """A SQLite file at this moment; another process may hold the lock on its folder.

    Reading a file that no process has open creates a log beside it, unless it must leave no trace: then it
    assumes that nothing starts to write meanwhile.
    """
    connection = await asyncio.to_thread(_begin, path, leave_no_trace=leave_no_trace)

    async def drive(plan: Plan[Any]) -> Any:
        try:
            return await asyncio.to_thread(run, connection, lambda: plan)
        except StorageUnavailable as exc:
            raise StorageRefused(f"Couldn't read the database {path}: {exc.__cause__}.") from exc

    async def close() -> None:
        await asyncio.to_thread(connection.close)

    return Snapshot("sqlite", drive, close)


def _begin(path: Path, *, leave_no_trace: bool) -> sqlite3.Connection:
    if not path.is_file():
        raise StorageRefused(f"No database found in {path.parent}. Set the data folder with --data.")
    is_open = path.with_name(f"{path.name}-wal").exists()
    how = "immutable=1" if leave_no_trace and not is_open else "mode=ro"
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{how}",
            uri=True,
            isolation_level=None,
            timeout=30,
            check_same_thread=False,
        )
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master")  # only a read fixes the moment
        except sqlite3.Error:
            connection.close()
            raise
    except sqlite3.Error as exc:
        raise StorageRefused(f"Couldn't read the database {path}: {exc}.") from exc
    return connection
