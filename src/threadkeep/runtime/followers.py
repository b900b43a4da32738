"""Turns that end when nobody follows them.

Each node says periodically which of these turns have followers on it, and looks whether those that it runs
have any on some node. A node that dies says nothing more, so its followers stop counting; they count again
where they reconnect.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress

from threadkeep.clock import monotonic
from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import TurnId
from threadkeep.domain.turn import Turn
from threadkeep.runtime.running import NodeTurns
from threadkeep.storage.turn_log import SqlTurnLog

ABSENT_S = 3.0
"""A turn counts as unfollowed if no node has seen a follower for this long."""
SURE_S = 2.0
"""How long a turn must be unfollowed before it ends: after an outage of the database, other nodes need a
moment to report their followers.
"""
BEGUN_S = ABSENT_S + SURE_S
"""How long a turn that has just begun waits for its first follower."""
RESUMED_S = 60.0
"""How long one that resumes on this node waits until its followers have found it again."""


class Followers:
    """Watches turns that end when nobody follows them: this node's own, and this node's followers."""

    def __init__(self, store: SqlTurnLog, running: NodeTurns, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._running = running
        self._clock = clock
        self._here: Counter[TurnId] = Counter()
        self._unfollowed_since: dict[TurnId, float] = {}

    def following(self, turn: Turn) -> AbstractAsyncContextManager[None]:
        """Within it, somebody follows a turn here."""
        counts = turn.stops_unfollowed and turn.is_active
        return self._following(turn.id) if counts else nullcontext()

    @asynccontextmanager
    async def _following(self, turn_id: TurnId) -> AsyncGenerator[None]:
        self._here[turn_id] += 1
        try:
            # At once: the turn may be about to end.
            with suppress(StorageError):
                await self._store.note_followed([turn_id])
            yield
        finally:
            self._here[turn_id] -= 1
            if not self._here[turn_id]:
                del self._here[turn_id]

    async def look(self) -> None:
        """Says which turns have followers here, and ends the turns here that have none anywhere."""
        before, self._unfollowed_since = self._unfollowed_since, {}
        if self._here:
            await self._store.note_followed([*self._here])
        suspects = [
            turn_id
            for turn_id, turn in self._running.all().items()
            if turn.held.turn.stops_unfollowed
            and self._clock() - turn.begun_at > _patience_s(turn.is_resumed)
        ]
        if not suspects:
            return
        unfollowed = await self._store.unfollowed(suspects, int(ABSENT_S * 1000))
        now = self._clock()
        self._unfollowed_since = {it: before.get(it, now) for it in unfollowed if it not in self._here}
        for turn_id, since in self._unfollowed_since.items():
            if now - since >= SURE_S:
                self._running.stop(turn_id, "abort")


def _patience_s(is_resumed: bool) -> float:
    return RESUMED_S if is_resumed else BEGUN_S
