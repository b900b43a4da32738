"""The newest stored part of a turn's log, for its followers on this node."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId

LEAST_KEPT = 32
"""How many chunks of a running turn stay in memory, at least; all of them are in the store."""


class LiveLog:
    """The newest chunks of one turn. Followers read at their own pace; the turn never waits for them."""

    def __init__(self, turn_id: TurnId, stored_to: int = 0) -> None:
        self.turn_id = turn_id
        self._stored_to = stored_to
        """The number of the last event that is only in the store."""
        self.ended = False
        """Whether the turn's last event is here."""
        self.closed = False
        """Whether no more will come: the turn has ended, or we can't know how it continues."""
        self.moved = False
        """Whether the turn continues elsewhere or later: followers must reopen its log."""
        self.paused = False
        """Whether the turn waits for its user."""
        self._chunks: list[LogChunk] = []
        self._changed = asyncio.Event()

    @property
    def last_seq(self) -> int:
        """The number of the newest stored event."""
        return self._chunks[-1].last_seq if self._chunks else self._stored_to

    def extend(self, chunks: Sequence[LogChunk], *, ended: bool = False) -> None:
        """Shows stored chunks; skips those already shown."""
        self._chunks += [chunk for chunk in chunks if chunk.first_seq > self.last_seq and chunk.has_events]
        if len(self._chunks) >= 2 * LEAST_KEPT and not ended:
            del self._chunks[:-LEAST_KEPT]
        self.ended = self.ended or ended
        self.closed = self.closed or ended
        self.wake()

    def close(self, *, moved: bool = False) -> None:
        """Shows no more; the turn has ended or continues elsewhere."""
        self.closed, self.moved = True, self.moved or moved
        self.wake()

    def since(self, seq: int) -> Sequence[LogChunk] | None:
        """The chunks with events after `seq`; None if only the store has all of them."""
        if seq >= self.last_seq:
            return ()
        if not self._chunks or self._chunks[0].first_seq > seq + 1:
            return None
        if self._chunks[-1].first_seq == seq + 1:  # a reader who keeps up
            return self._chunks[-1:]
        return self._chunks[bisect_right(self._chunks, seq, key=lambda chunk: chunk.last_seq) :]

    def wake(self) -> None:
        """Wakes everyone waiting now; later arrivals wait for the next call."""
        self._changed.set()
        self._changed.clear()

    async def changed(self) -> None:
        """Returns when there is more, when no more will come, or when woken."""
        await self._changed.wait()

    async def until_closed(self) -> None:
        """Returns when no more will come."""
        while not self.closed:
            await self.changed()
