"""The bus within one process, and over PostgreSQL's LISTEN/NOTIFY."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing

from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED, Signal
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.bus")

CHANNEL = "threadkeep"
LAST_WORDS_S = 5.0
MOST_PAYLOAD_BYTES = 7_900  # PostgreSQL accepts payloads under 8,000 bytes
# SQLite has no other processes to notify.
_NOTIFY = Statement("SELECT 1", postgres="SELECT pg_notify(:channel, :payload)")


def bus_on(database: Database, loops: Loops) -> "LocalBus":
    """The bus for the processes that share a database."""
    return PostgresBus(database, loops) if database.dialect == "postgres" else LocalBus()


class LocalBus:
    """All listeners are in this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Signal], None]] = []

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Delivers signals at once."""
        self.deliver(signals)

    def deliver(self, signals: Iterable[Signal]) -> None:
        """Calls this process's listeners, each even if another fails."""
        for signal in signals:
            for hear in tuple(self._listeners):
                try:
                    hear(signal)
                except Exception:
                    log.exception("a listener failed")

    def subscribe(self, hear: Callable[[Signal], None]) -> Callable[[], None]:
        """Calls `hear` for every signal, until the returned function is called."""
        self._listeners.append(hear)
        return lambda: self._listeners.remove(hear)

    async def close(self) -> None:
        """Nothing to stop."""


class PostgresBus(LocalBus):
    """Nodes that share a PostgreSQL database. One connection listens and is reopened when it breaks.

    A NOTIFY is a commit of its own, so publishers don't wait for it: signals published meanwhile go out with
    the next one, each once. If it fails, a later one makes the other nodes catch up.
    """

    def __init__(self, database: Database, loops: Loops) -> None:
        super().__init__()
        self._database = database
        self._unsent: dict[Signal, None] = {}
        self._more = asyncio.Event()
        self._is_closing = False
        self._listening = loops.start("listening to other nodes", self._listen)
        self._notifying = loops.start("notifying other nodes", self._notify, self._more.wait)

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Signals this node at once and the others soon."""
        signals = list(signals)
        self.deliver(signals)
        self._unsent.update(dict.fromkeys(signals))
        self._more.set()

    async def _notify(self) -> bool:
        self._more.clear()
        unsent, self._unsent = self._unsent, {}
        try:
            for payload in _payloads(unsent):
                await self._database.execute(_NOTIFY(channel=CHANNEL, payload=payload))
        except Exception:
            # One signal for all that are lost: during an outage they would pile up.
            self._unsent = {MISSED: None, **self._unsent}
            raise
        return self._is_closing and not self._unsent

    async def _listen(self) -> None:
        async with aclosing(self._database.listen(CHANNEL)) as payloads:
            async for payload in payloads:
                self._listening.succeeded()
                self.deliver(payload.split("\n") if payload else [MISSED])

    async def close(self) -> None:
        """Sends the remaining signals, unless the database is unavailable, and stops listening."""
        self._is_closing = True
        self._more.set()
        await asyncio.wait([self._notifying.task], timeout=LAST_WORDS_S)
        await end_tasks(self._notifying.task, self._listening.task)


def _payloads(signals: Iterable[Signal]) -> Iterator[str]:
    pending: list[Signal] = []
    size = 0
    for signal in signals:
        more = len(signal.encode()) + 1
        if pending and size + more > MOST_PAYLOAD_BYTES:
            yield "\n".join(pending)
            pending, size = [], 0
        pending.append(signal)
        size += more
    if pending:
        yield "\n".join(pending)
