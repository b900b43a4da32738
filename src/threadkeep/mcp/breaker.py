"""A circuit breaker: waits longer after each failure of a server."""

from dataclasses import dataclass

DELAYS_S = (0.0, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""The pause after a server's first, second, … failure in a row; the last one repeats."""


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. After a pause, one attempt decides how long the next pause is."""

    failures: int = 0
    reason: str = ""
    _open_until: float = 0.0

    def failed(self, now: float, reason: str) -> None:
        """The server failed to start, or ended by itself."""
        self._open_until = now + DELAYS_S[min(self.failures, len(DELAYS_S) - 1)]
        self.failures += 1
        self.reason = reason

    def succeeded(self) -> None:
        """The server did what was asked of it."""
        self.failures, self.reason, self._open_until = 0, "", 0.0

    def forgive(self) -> None:
        """Allows the next attempt at once; the failures still count."""
        self._open_until = 0.0

    def wait_s(self, now: float) -> float:
        """How long the pause still lasts."""
        return max(0.0, self._open_until - now)
