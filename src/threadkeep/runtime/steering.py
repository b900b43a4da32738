"""Takes messages that steer a turn out of the queue and into the turn's log, in one commit."""

import asyncio
from collections.abc import Sequence

from threadkeep.clock import Clock
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk, TurnEvent, UserMessage
from threadkeep.domain.queued import QueuedMessage
from threadkeep.engine.stop import TurnLost
from threadkeep.log.format import decode_chunk, encode_chunk
from threadkeep.log.writer import LogWriter, TurnLog, persist
from threadkeep.runtime.signals import Signals
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn


class SteeringMessages:
    """Passes the turns that run here the messages that their users have sent meanwhile."""

    def __init__(self, store: Store, writer: LogWriter, signals: Signals, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._signals = signals
        self._clock = clock

    async def take_in(self, held: HeldTurn, turn_log: TurnLog) -> Sequence[UserMessage]:
        """Adds the messages that steer a turn, if any, to the end of its log."""
        waiting = await persist(lambda: self._store.queue.waiting(held.conversation.id))
        if not any(message.steers_turn_id == held.turn.id for message in waiting):
            return ()
        await self._writer.flush(turn_log)
        storing = asyncio.create_task(self._store_and_show(held, turn_log))
        try:
            return await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.wait([storing])  # a stopped turn still writes to its log after this
            raise

    async def _store_and_show(self, held: HeldTurn, turn_log: TurnLog) -> Sequence[UserMessage]:
        try:
            chunk = await persist(lambda: self._store_taken(held, turn_log))
        except StorageConflict as exc:
            raise TurnLost from exc
        if chunk is None:  # they were removed meanwhile
            return ()
        events = decode_chunk(chunk.events)
        turn_log.show_stored(chunk, events)
        await self._signals.wrote([chunk])
        return [event.body for event in events if isinstance(event.body, UserMessage)]

    async def _store_taken(self, held: HeldTurn, turn_log: TurnLog) -> LogChunk | None:
        # The first try may have stored it, and only the response was lost.
        if written := await self._store.log.read(held.turn.id, turn_log.folding.last_seq):
            return written[0]
        now = self._clock()

        def to_chunk(messages: Sequence[QueuedMessage]) -> LogChunk:
            first = turn_log.folding.last_seq + 1
            events = [
                TurnEvent(held.turn.id, seq, now, UserMessage(message.id, message.content))
                for seq, message in enumerate(messages, first)
            ]
            return LogChunk(held.turn.id, first, events[-1].seq, encode_chunk(events))

        return await self._store.queue.take_in(held.conversation.id, held.turn.id, held.fence, now, to_chunk)
