"""Reads a refused sender's remaining data slowly, so that it gets the response and delays nobody else.

If we closed the connection, it would lose the response; if we read at full speed, it would delay everybody.
"""

# How long to read a refused sender; then its connection is closed, whatever is left.
DISCARD_S = 5.0
# A part has at most 256 KB, so we read about 25 MB per second from all refused senders together.
PAUSE_S = 0.01


class Discarding:
    """All refused senders: the more there are, the slower each is read."""

    def __init__(self) -> None:
        self._senders = 0

    def begin(self) -> None:
        """Adds a refused sender."""
        self._senders += 1

    def end(self) -> None:
        """Removes one."""
        self._senders -= 1

    @property
    def pause_s(self) -> float:
        """How long to leave a sender alone after a part of its data."""
        return PAUSE_S * self._senders
