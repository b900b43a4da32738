"""A breaker: a server that keeps failing is left alone for longer and longer."""

from dataclasses import dataclass

DELAYS_S = (0.0, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""How long a server is left alone after its first, second, … failure in a row; the last one stays."""


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row. Once it is closed again, one try decides how long the next pause is."""

    failures: int = 0
    reason: str = ""
    _open_until: float = 0.0

    def failed(self, now: float, reason: str) -> None:
        """The server could not be started, or ended by itself."""
        self._open_until = now + DELAYS_S[min(self.failures, len(DELAYS_S) - 1)]
        self.failures += 1
        self.reason = reason

    def succeeded(self) -> None:
        """The server did what was asked of it."""
        self.failures, self.reason, self._open_until = 0, "", 0.0

    def forgive(self) -> None:
        """Lets the next try be made at once; the failures still count."""
        self._open_until = 0.0

    def wait_s(self, now: float) -> float:
        """How long the server is still to be left alone."""
        return max(0.0, self._open_until - now)
