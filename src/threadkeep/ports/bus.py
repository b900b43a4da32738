"""How nodes tell each other that something has happened. What happened is read from the store."""

from collections.abc import Callable, Iterable
from typing import Protocol

Signal = str
"""A short text: what kind of thing, and the id of what it is about."""

MISSED = "missed"
"""The signal of a bus that may have lost signals of other nodes."""


class Bus(Protocol):
    """A way to wake others. Signals may be lost or come twice; nobody may rely on one alone."""

    async def publish(self, signals: Iterable[Signal]) -> None:
        """Tells this node at once, and every other one soon."""
        ...

    def subscribe(self, hear: Callable[[Signal], None]) -> Callable[[], None]:
        """Calls `hear` for every signal, until the returned function is called."""
        ...

    async def close(self) -> None:
        """Stops listening."""
        ...
