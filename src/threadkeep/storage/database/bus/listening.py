"""The bus over PostgreSQL's LISTEN/NOTIFY."""

import asyncio
from contextlib import aclosing

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED
from threadkeep.storage.database.bus.sending import CHANNEL, GATHERED_S, POLLS, SAID_EVERY_S, SharedBus
from threadkeep.storage.database.bus.signal_rows import KEPT_MS, SignalRows
from threadkeep.storage.database.connector import Database
from threadkeep.tasks import end_tasks

POLLER_COUNTS_S = 60.0
"""How long a node that polls counts as there after it said so."""
UNKNOWN_S = 1.5 * SAID_EVERY_S
"""How long one may be there that we haven't heard since we began to listen."""
COMES_BACK_S = 10.0
"""How long our own notification may take to come back."""


class PostgresBus(SharedBus):
    """One connection listens and is reopened when it breaks. For nodes that poll, signals are rows, too."""

    def __init__(self, database: Database, loops: Loops) -> None:
        super().__init__(loops, self._send)
        self._database = database
        self._rows = SignalRows(database, CHANNEL)
        self._rows_until = asyncio.get_running_loop().time() + UNKNOWN_S
        self._has_rows = False
        self._comes_back: asyncio.Timeout | None = None
        self._is_deaf = False
        self._listening = loops.start("listening to other nodes", self._listen)

    async def _send(self, payload: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._comes_back and self._comes_back.when() is None:
            self._comes_back.reschedule(now + COMES_BACK_S)
        if now < self._rows_until:
            await self._rows.add(payload)
            self._has_rows = True
            await asyncio.sleep(GATHERED_S)
            return
        await self._rows.notify(payload)
        if self._has_rows and now > self._rows_until + KEPT_MS / 1000:
            await self._rows.trim()  # no node that polls is left to do it
            self._has_rows = False

    async def _listen(self) -> None:
        try:
            async with aclosing(self._database.listen(CHANNEL)) as payloads, asyncio.timeout(None) as timeout:
                async for payload in payloads:
                    self._hear(payload)
                    timeout.reschedule(None)
                    self._comes_back = timeout
        except TimeoutError as exc:
            self._is_deaf = True
            raise StorageUnavailable(
                "Notifications don't arrive through LISTEN. With a connection pooler such as PgBouncer in "
                "transaction mode, set THREADKEEP_BUS_URL=poll:."
            ) from exc
        finally:
            self._comes_back = None

    def _hear(self, payload: str) -> None:
        self._is_deaf = self._is_deaf and not payload
        if not self._is_deaf:
            self._listening.succeeded()
        signals = payload.split("\n") if payload else [MISSED]
        counts_s = POLLER_COUNTS_S if POLLS in signals else 0 if payload else UNKNOWN_S
        self._rows_until = max(self._rows_until, asyncio.get_running_loop().time() + counts_s)
        self.deliver(signal for signal in signals if signal != POLLS)

    async def close(self) -> None:
        """Sends the remaining signals, unless the database is unavailable, and stops listening."""
        await self._sender.close()
        await end_tasks(self._listening.task)
