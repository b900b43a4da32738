"""Notifications between nodes. They say that something changed; the store has the change."""

from collections.abc import Callable, Iterable
from typing import Protocol

Signal = str
"""A short text: the kind of change, and the id of what changed."""

MISSED = "missed"
"""The signal of a bus that may have lost signals from other nodes."""


class Bus(Protocol):
    """A way to wake others. Signals can be lost or arrive twice; never depend on a single one."""

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Notifies this node immediately, and every other node soon."""
        ...

    def subscribe(self, hear: Callable[[Signal], None]) -> Callable[[], None]:
        """Calls `hear` for every signal, until the returned function is called."""
        ...

    async def close(self) -> None:
        """Stops listening."""
        ...
