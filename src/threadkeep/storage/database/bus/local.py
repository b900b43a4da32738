"""The bus within one process."""

import logging
from collections.abc import Callable, Iterable

from threadkeep.ports.bus import Signal

log = logging.getLogger("threadkeep.bus")


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
