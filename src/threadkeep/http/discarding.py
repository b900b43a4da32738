"""What a sender that was refused still sends: read slowly, so that it gets the answer and nobody else waits.

Closed while it sends, it would lose the answer; read as fast as it sends, it would take everybody's time.
"""

# For so long a refused sender is read; then its connection is closed, whatever it still has.
DISCARD_S = 5.0
# A part has at most 256 KB, so all refused senders together get about 25 MB read in a second.
PAUSE_S = 0.01


class Discarding:
    """All senders whose data nobody wants: the more there are, the slower each is read."""

    def __init__(self) -> None:
        self._senders = 0

    def begin(self) -> None:
        """One more sends what nobody wants."""
        self._senders += 1

    def end(self) -> None:
        """One of them has ended."""
        self._senders -= 1

    @property
    def pause_s(self) -> float:
        """How long to leave a sender alone after a part of its data."""
        return PAUSE_S * self._senders
