"""The bus for a database that can't be listened to, such as behind PgBouncer in transaction mode."""

import asyncio

from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED
from threadkeep.storage.database.bus.sending import CHANNEL, GATHERED_S, POLLS, SAID_EVERY_S, SharedBus
from threadkeep.storage.database.bus.signal_rows import Position, SignalRows
from threadkeep.storage.database.connector import Database
from threadkeep.tasks import end_tasks

SHORTEST_S, LONGEST_S = 0.05, 0.5
"""How long it waits between two looks: short while other nodes have something to say."""
SLOWER = 1.3


class PollingBus(SharedBus):
    """Looks for the rows of other nodes: one small query on the primary key each time."""

    def __init__(self, database: Database, loops: Loops) -> None:
        self._rows = SignalRows(database, CHANNEL)
        super().__init__(loops, self._rows.add, pause_s=GATHERED_S)
        self._seen: Position | None = None
        self._pause_s = SHORTEST_S
        self._polling = loops.start("polling for other nodes", self._look, self._wait)
        self._saying = loops.start("telling other nodes that this one polls", self._say, _until_next)

    async def _look(self) -> None:
        if self._seen is None:
            # Whatever came before our own row counts as missed; what comes after it is read.
            self._seen = await self._rows.add(POLLS)
            self.deliver([MISSED])
        found = await self._rows.read(self._seen)
        if found is None:
            self._seen = None
            self._pause_s = SHORTEST_S
            return
        payloads, self._seen = found
        self._pause_s = SHORTEST_S if payloads else min(self._pause_s * SLOWER, LONGEST_S)
        for payload in payloads:
            self.deliver(signal for signal in payload.split("\n") if signal != POLLS)

    async def _wait(self) -> None:
        await asyncio.sleep(self._pause_s)

    async def _say(self) -> None:
        await self._rows.notify(POLLS)
        await self._rows.trim()

    async def close(self) -> None:
        """Sends the remaining signals, unless the database is unavailable, and stops polling."""
        await self._sender.close()
        await end_tasks(self._polling.task, self._saying.task)


async def _until_next() -> None:
    await asyncio.sleep(SAID_EVERY_S)
