"""Recovery: turns whose node is gone are ended, so that their conversations go on."""

import asyncio
import logging

from threadkeep.domain.ids import TurnId
from threadkeep.engine.ending import ABANDONED
from threadkeep.log.end_writer import EndWriter
from threadkeep.log.format import UnreadableEvent, decode_chunk
from threadkeep.log.leases import lease_of
from threadkeep.log.running import RunningTurns
from threadkeep.log.writer import LogWriter, TurnLog, TurnLost
from threadkeep.logs import Subject, about
from threadkeep.ports.turn_log import TurnLogStore

log = logging.getLogger("threadkeep.turns")


class Recovery:
    """Looks for turns that nobody runs any more; `alone` says that there is no other node."""

    def __init__(
        self,
        node_id: str,
        store: TurnLogStore,
        running: RunningTurns,
        writer: LogWriter,
        end_writer: EndWriter,
        *,
        alone: bool,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._running = running
        self._writer = writer
        self._end_writer = end_writer
        self._alone = alone
        self._free = asyncio.Lock()

    async def recover_abandoned(self) -> None:
        """Ends all turns whose lease has run out; one call at a time."""
        async with self._free:
            for turn_id in await self._store.abandoned(self._node_id, alone=self._alone):
                if self._running.get(turn_id) is None:  # ours are late at most
                    with about(Subject(turn_id=turn_id)):
                        await self._recover(turn_id)

    async def _recover(self, turn_id: TurnId) -> None:
        """Takes a turn over and ends it: what was shown is kept."""
        held = await self._store.adopt(turn_id, lease_of(self._node_id), alone=self._alone)
        if held is None:
            return
        turn_log = self._writer.open(turn_id, held.fence)
        await self._read(turn_log)
        try:
            await self._end_writer.cut_off(held, turn_log, ABANDONED)
        except TurnLost:
            return
        log.warning("turn %s was ended: its node is gone", turn_id)

    async def _read(self, turn_log: TurnLog) -> None:
        """Folds what is stored of a turn, as far as it can be read."""
        chunks = await self._store.read(turn_log.turn_id, 0)
        try:
            for chunk in chunks:
                for event in decode_chunk(chunk.events):
                    turn_log.folding.add(event)
        except UnreadableEvent as exc:  # of a node of a later version: what comes before it is kept
            log.warning("turn %s is ended with what can be read of it: %s", turn_log.turn_id, exc.message)
            turn_log.folding.last_seq = chunks[-1].last_seq
