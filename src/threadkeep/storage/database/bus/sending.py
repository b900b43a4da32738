"""How a node notifies the others, whichever way it hears them itself."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from threadkeep.loops import Loops
from threadkeep.ports.bus import MISSED, Signal
from threadkeep.storage.database.bus.local import LocalBus
from threadkeep.tasks import end_tasks

CHANNEL = "threadkeep"
LAST_WORDS_S = 5.0
MOST_PAYLOAD_BYTES = 7_900  # PostgreSQL accepts payloads under 8,000 bytes

POLLS = "polls"
"""The signal of a node that polls: those that listen store their signals for it."""
SAID_EVERY_S = 10.0
"""How often a node says that it polls, and trims."""
GATHERED_S = 0.05
"""How long signals are gathered after each row: a node adds at most 20 a second."""


class Sender:
    """Sends signals without keeping publishers waiting.

    Each payload is a commit of its own: signals published meanwhile go out with the next one, each once. If
    one fails, a later one makes the other nodes catch up.
    """

    def __init__(self, loops: Loops, send: Callable[[str], Awaitable[object]], *, pause_s: float = 0) -> None:
        """`pause_s`: how long it gathers signals after each sending."""
        self._send = send
        self._pause_s = pause_s
        self._unsent: dict[Signal, None] = {}
        self._more = asyncio.Event()
        self._is_closing = False
        self._sending = loops.start("notifying other nodes", self._send_all, self._wait)

    def add(self, signals: Iterable[Signal]) -> None:
        """Sends them soon."""
        self._unsent.update(dict.fromkeys(signals))
        self._more.set()

    async def close(self) -> None:
        """Sends the remaining signals, unless the database is unavailable."""
        self._is_closing = True
        self._more.set()
        await asyncio.wait([self._sending.task], timeout=LAST_WORDS_S)
        await end_tasks(self._sending.task)

    async def _send_all(self) -> bool:
        self._more.clear()
        unsent, self._unsent = self._unsent, {}
        try:
            for payload in _payloads(unsent):
                await self._send(payload)
        except Exception:
            # One signal for all that are lost: during an outage they would pile up.
            self._unsent = {MISSED: None, **self._unsent}
            raise
        return self._is_closing and not self._unsent

    async def _wait(self) -> None:
        if self._pause_s and not self._is_closing:
            await asyncio.sleep(self._pause_s)
        await self._more.wait()


class SharedBus(LocalBus):
    """Nodes that share a PostgreSQL database: this one hears at once, the others soon."""

    def __init__(self, loops: Loops, send: Callable[[str], Awaitable[object]], *, pause_s: float = 0) -> None:
        super().__init__()
        self._sender = Sender(loops, send, pause_s=pause_s)

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Signals this node at once and the others soon."""
        signals = list(signals)
        self.deliver(signals)
        self._sender.add(signals)


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
