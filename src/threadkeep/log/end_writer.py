"""Stores how a turn ends: its last events, its reply and its end are one commit."""

import logging

from threadkeep.clock import Clock
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import EventBody, Failed
from threadkeep.domain.turn import Turn
from threadkeep.engine.ending import cut_off
from threadkeep.log.signals import Signals
from threadkeep.log.writer import LogWriter, TurnLog, TurnLost, persist
from threadkeep.metrics import Metrics
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import HeldTurn

log = logging.getLogger("threadkeep.turns")


class EndWriter:
    """Ends turns that this node may write."""

    def __init__(
        self, store: Store, writer: LogWriter, signals: Signals, clock: Clock, metrics: Metrics
    ) -> None:
        self._store = store
        self._writer = writer
        self._signals = signals
        self._clock = clock
        self._metrics = metrics

    async def end(self, held: HeldTurn, turn_log: TurnLog, *last: EventBody) -> None:
        """Stores what is pending, the last events, the reply and the turn's end together, then shows them."""
        await self._writer.settle(turn_log)
        chunk = turn_log.take(*last)
        assert chunk is not None
        reply = turn_log.folding.message(held.reply)
        ended = held.conversation.end_turn(held.turn, reply, self._clock())
        try:
            await persist(lambda: self._store.turns.end(ended, chunk, held.fence))
        except StorageConflict as exc:
            # Unless it was stored at the first try, and only the answer was lost on the way.
            written = await self._store.log.read(held.turn.id, chunk.first_seq - 1)
            if [it.events for it in written] != [chunk.events]:
                raise TurnLost from exc
        turn_log.live.extend([chunk], ended=True)
        self._metrics.event_lag.observe((self._clock() - turn_log.taken_at) / 1000)
        self._metrics.turn_ended(ended.turn)
        _log_end(ended.turn)
        await self._signals.wrote([chunk])

    async def cut_off(self, held: HeldTurn, turn_log: TurnLog, failure: Failed) -> None:
        """Ends a turn that cannot go on, with what its log still lacks before its last event."""
        folding = turn_log.folding
        reply, open_iteration = folding.message(held.reply), folding.open_iteration
        turn, sent = held.turn, None
        if open_iteration is not None:
            sent = await self._store.receipts.get(turn.conversation_id, turn.id)
        last = cut_off(
            failure,
            reply,
            folding.open_calls,
            open_iteration=open_iteration,
            request_tokens=sent[0].token_estimate if sent else 0,
        )
        await self.end(held, turn_log, *last)


def _log_end(turn: Turn) -> None:
    status = f"{turn.status} {turn.error.code}" if turn.error else turn.status
    took = (turn.ended_at or turn.started_at) - turn.started_at
    seen = {"status": turn.status, "code": turn.error and turn.error.code, "duration_ms": took}
    log.info("turn ended: %s after %d ms", status, took, extra={"fields": seen})
