"""A database whose answers are timed."""

import time
from collections.abc import AsyncGenerator, Callable
from typing import Literal, TypeVar

from threadkeep.storage.database.connector import Database, Plan, Query, Rows

T = TypeVar("T")

Observe = Callable[[float], None]


class TimedDatabase:
    """Delegates everything to a database and reports how many seconds each answer took."""

    def __init__(self, database: Database, observe_read: Observe, observe_write: Observe) -> None:
        self._database = database
        self._observe_read = observe_read
        self._observe_write = observe_write

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which database it is."""
        return self._database.dialect

    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement."""
        begun = time.perf_counter()
        rows = await self._database.fetch(query)
        self._observe_read(time.perf_counter() - begun)
        return rows

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements."""
        begun = time.perf_counter()
        result = await self._database.read(plan)
        self._observe_read(time.perf_counter() - begun)
        return result

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        """Runs one writing statement."""
        begun = time.perf_counter()
        rows = await self._database.execute(query, urgent=urgent, apart=apart)
        self._observe_write(time.perf_counter() - begun)
        return rows

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        """Runs a plan in one transaction."""
        begun = time.perf_counter()
        result = await self._database.write(plan, urgent=urgent, heavy=heavy)
        self._observe_write(time.perf_counter() - begun)
        return result

    def listen(self, channel: str) -> AsyncGenerator[str]:
        """What other processes send through the database."""
        return self._database.listen(channel)

    async def close(self) -> None:
        """Closes the database."""
        await self._database.close()
