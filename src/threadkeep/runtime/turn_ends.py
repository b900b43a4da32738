"""Stores a turn's end: its last events, its reply and the start of the next turn, in one commit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count

from threadkeep.clock import Clock
from threadkeep.context.tool_results import TURN_ENDED
from threadkeep.domain.conversation import EndedTurn, WaitingEnd
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import EventBody, Failed, LogChunk
from threadkeep.domain.message import Message
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn
from threadkeep.engine.ending import cut_off, last_events, stopped
from threadkeep.engine.spending import Priced, at_no_price
from threadkeep.engine.stop import TurnLost
from threadkeep.log.writer import LogWriter, TurnLog, persist
from threadkeep.metrics import Metrics
from threadkeep.runtime.running import NodeTurn
from threadkeep.runtime.signals import Signals
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

log = logging.getLogger("threadkeep.turns")

TRIES_TO_PREPARE_NEXT = 5
"""How often to prepare the next turn if something changes meanwhile; then the queue is held."""


OpenNext = Callable[[EndedTurn, QueuedMessage], Awaitable[NodeTurn | None]]
"""Opens the turn of a queued message behind one that ends; None if it can't begin, and the queue is held."""
RunNext = Callable[[NodeTurn], object]
"""Runs it, once its start is stored."""


class TurnEnds:
    """Ends turns that this node may write."""

    def __init__(
        self,
        store: Store,
        writer: LogWriter,
        signals: Signals,
        clock: Clock,
        metrics: Metrics,
        priced: Priced = at_no_price,
    ) -> None:
        self._priced = priced
        self._store = store
        self._writer = writer
        self._signals = signals
        self._clock = clock
        self._metrics = metrics

    async def end(
        self,
        held: HeldTurn,
        turn_log: TurnLog,
        *last: EventBody,
        open_next: OpenNext | None = None,
        run_next: RunNext | None = None,
    ) -> None:
        """Stores what is pending, the last events, the reply and the turn's end together, then shows them.

        If a message is queued behind a completed turn, its turn begins in the same commit.
        """
        await self._writer.settle(turn_log)
        chunk = turn_log.take(*last)
        assert chunk is not None
        receipts = tuple(turn_log.receipts.values())
        turn_log.receipts.clear()  # so that the writer doesn't store them, too
        ended = held.conversation.end_turn(held.turn, await _reply(held, turn_log), self._clock())
        state = await self._state_left(turn_log)
        next_turn = await self._store_end(held, ended, chunk, receipts, state, open_next)
        if next_turn is not None and run_next is not None:
            run_next(next_turn)  # readers who see the end can follow the next turn
        turn_log.live.extend([chunk], ended=True)
        self._metrics.event_lag.observe((self._clock() - turn_log.taken_at) / 1000)
        self._metrics.turn_ended(ended.turn)
        self._writer.note_charges(chunk)
        _log_end(ended.turn)
        await self._signals.ended(ended, chunk)

    async def _state_left(self, turn_log: TurnLog) -> bytes | None:
        """What a turn's program keeps with the reply: as it left it, else as it saved it last."""
        if turn_log.state is not None or (saved := turn_log.saved) is None:
            return turn_log.state
        if (ref := saved.state_ref) is None:
            return bytes(saved.state)
        return await persist(lambda: self._store.states.value(turn_log.turn_id, ref))

    async def _store_end(
        self,
        held: HeldTurn,
        ended: EndedTurn,
        chunk: LogChunk,
        receipts: Sequence[TurnReceipt],
        state: bytes | None,
        open_next: OpenNext | None,
    ) -> NodeTurn | None:
        """Stores the end, with the queue's next turn if there is one; retries while the queue changes."""
        version, next_turn = 0, None
        for tries in count(1):
            end = partial(
                self._store.turns.end,
                ended,
                chunk,
                held.fence,
                receipts=receipts,
                queue_version=version,
                next_turn=next_turn and next_turn.begun,
                state=state,
            )
            try:
                await persist(end)
                return next_turn
            except StorageConflict as exc:
                # The first try may have stored it, and only the response was lost.
                if await self._is_stored(chunk):
                    return next_turn
                await _give_back(next_turn)
                queue = await persist(lambda: self._store.queue.state_for(held.turn.id, held.fence))
                if queue is None or (next_turn is None and queue.version == version):
                    raise TurnLost from exc
            except BaseException:
                await _give_back(next_turn)
                raise
            version, next_turn = queue.version, None
            if queue.first is not None and open_next is not None and tries <= TRIES_TO_PREPARE_NEXT:
                next_turn = await open_next(ended, queue.first)
        return None

    async def _is_stored(self, chunk: LogChunk) -> bool:
        written = await persist(lambda: self._store.log.read(chunk.turn_id, chunk.first_seq - 1))
        return [it.events for it in written] == [chunk.events]

    async def end_of_waiting(self, held: HeldTurn, turn_log: TurnLog) -> WaitingEnd:
        """The end of a waiting turn whose user continues without deciding; stores nothing."""
        open_calls = turn_log.folding.open_calls
        last = last_events(
            stopped(held.turn, "abort"),
            open_calls=open_calls,
            why=TURN_ENDED,
            reported=turn_log.folding.usage,
            unreported=None,
            model=held.turn.model,
            waiting={call.tool_call_id for call in open_calls},
        )
        chunk = turn_log.take(*last)
        assert chunk is not None
        ended = held.conversation.end_turn(held.turn, await _reply(held, turn_log), self._clock())
        return WaitingEnd(ended, chunk, held.fence, await self._state_left(turn_log))

    async def announce_end(self, end: WaitingEnd) -> None:
        """Announces a turn's stored end."""
        self._metrics.turn_ended(end.ended.turn)
        self._writer.note_charges(end.chunk)
        _log_end(end.ended.turn)
        await self._signals.ended(end.ended, end.chunk)

    async def cut_off(self, held: HeldTurn, turn_log: TurnLog, failure: Failed) -> None:
        """Ends a turn that can't continue; adds what its log lacks before its last event."""
        folding = turn_log.folding
        turn, sent = held.turn, None
        reply = await _reply(held, turn_log)
        # What a program says begins an iteration, too: its model calls have reservations of their own.
        open_iteration = folding.open_iteration if turn.code is None else None
        if open_iteration is not None:
            sent = await self._store.receipts.get(turn.conversation_id, turn.id)
        last = cut_off(
            failure,
            reply,
            folding.open_calls,
            open_iteration=open_iteration,
            request_tokens=sent[0].token_estimate if sent else 0,
            priced=self._priced,
        )
        await self.end(held, turn_log, *last)


async def _reply(held: HeldTurn, turn_log: TurnLog) -> Message:
    """The reply that a turn's log describes; a large one is made beside the event loop."""
    fold = partial(turn_log.folding.message, held.reply)
    return await asyncio.to_thread(fold) if turn_log.folding.is_large else fold()


async def _give_back(next_turn: NodeTurn | None) -> None:
    if next_turn is not None:
        await next_turn.course.give_back()


def _log_end(turn: Turn) -> None:
    status = f"{turn.status} {turn.error.code}" if turn.error else turn.status
    took = (turn.ended_at or turn.started_at) - turn.started_at
    seen = {"status": turn.status, "code": turn.error and turn.error.code, "duration_ms": took}
    log.info("turn ended: %s after %d ms", status, took, extra={"fields": seen})
