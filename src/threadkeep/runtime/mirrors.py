"""Mirrors: the logs of turns on other nodes, read from the store for followers on this node."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from threadkeep.domain.ids import TurnId
from threadkeep.domain.turn import ACTIVE, TurnStatus
from threadkeep.log.live import LiveLog
from threadkeep.loops import Loop, Loops
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

LOOK_EVERY_S = 1.0
LOOK_AT_PAUSED_EVERY_S = 5.0
"""A turn that waits for its user may do so for days."""


@dataclass(slots=True)
class _Mirror:
    live: LiveLog
    wake: asyncio.Event
    loop: Loop
    followers: int = 0


class Mirrors:
    """One mirror for each turn that has followers here but runs elsewhere; all its followers share it."""

    def __init__(self, store: Store, loops: Loops) -> None:
        self._store = store
        self._loops = loops
        self._mirrors: dict[TurnId, _Mirror] = {}
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def open(self, turn_id: TurnId) -> AsyncGenerator[LiveLog]:
        """A turn's log as its node stores it; nothing once closed."""
        if self._is_closed:
            nothing = LiveLog(turn_id)
            nothing.close()
            yield nothing
            return
        mirror = self._mirrors.get(turn_id)
        if mirror is None:
            mirror = self._mirrors[turn_id] = self._start(LiveLog(turn_id))
        elif mirror.live.paused:  # the turn may continue by now, and this reader knows it
            mirror.live.paused = False
            mirror.wake.set()
        mirror.followers += 1
        try:
            yield mirror.live
        finally:
            mirror.followers -= 1
            if not mirror.followers:
                mirror.loop.task.cancel()
                del self._mirrors[turn_id]

    def wake(self, turn_id: TurnId) -> None:
        """A turn's log has grown."""
        if mirror := self._mirrors.get(turn_id):
            mirror.wake.set()

    async def close(self) -> None:
        """Stops reading and closes the logs, even if their turns haven't ended."""
        self._is_closed = True
        await end_tasks(*(mirror.loop.task for mirror in self._mirrors.values()))
        for mirror in self._mirrors.values():
            mirror.live.close()

    def _start(self, live: LiveLog) -> _Mirror:
        """Reads another node's turn until it ends, when woken and periodically."""
        wake = asyncio.Event()

        async def read() -> bool:
            wake.clear()
            await read_on(self._store, live)
            return live.closed

        async def until_woken() -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AT_PAUSED_EVERY_S if live.paused else LOOK_EVERY_S):
                    await wake.wait()

        return _Mirror(live, wake, self._loops.start("mirrors of turns", read, until_woken))


async def read_on(store: Store, live: LiveLog) -> None:
    """Shows what a turn's node has stored since."""
    # The status first: if the turn has ended, the log is complete.
    status = await store.turns.status(live.turn_id)
    if status is None:  # purged
        live.close()
        return
    ended = status not in ACTIVE
    live.paused = status is TurnStatus.WAITING
    async for chunks in store.log.pages(live.turn_id, live.last_seq):
        live.extend(chunks)
    live.extend((), ended=ended)
