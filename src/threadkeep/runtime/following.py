"""Follows a turn from any event on, on any node: used by streams, WebSockets and waiting requests."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Self

from threadkeep.domain.errors import EventsExpired, TurnNotFound
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.turn import Turn
from threadkeep.log.live import LiveLog
from threadkeep.log.portions import portions
from threadkeep.log.replies import replayed
from threadkeep.log.values import whole_chunks
from threadkeep.runtime.followers import Followers
from threadkeep.runtime.mirrors import Mirrors
from threadkeep.runtime.running import NodeTurns
from threadkeep.storage.store import Store

NO_LONGER_STORED = "This turn's events are no longer stored. Read its message instead."
ALL_SEEN = sys.maxsize
"""The position of a reader who only waits for the end."""


class Follower:
    """One reader of one turn's log, within `async with`.

    Iterating yields chunks as they are stored, with their values, at the reader's pace; no turn waits for it.
    It yields an empty sequence when the reader is woken, and stops when no more will come.
    """

    def __init__(
        self,
        opening: Callable[[], AbstractAsyncContextManager[LiveLog]],
        after: int,
        store: Store,
        conversation_id: ConversationId,
        presence: AbstractAsyncContextManager[None],
        read_ahead: Sequence[LogChunk] = (),
    ) -> None:
        self._presence = presence
        self._open = opening
        self._opening = opening()
        self._conversation_id = conversation_id
        self._seen = after
        self._store = store
        self._live: LiveLog
        self._read_ahead = portions(read_ahead)
        """What was read already, and comes next."""

    async def __aenter__(self) -> Self:
        await self._presence.__aenter__()
        try:
            self._live = await self._opening.__aenter__()
        except BaseException:
            await self._presence.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._opening.__aexit__(kind, exc, trace)
        finally:
            await self._presence.__aexit__(None, None, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[LogChunk]:
        chunks = next(self._read_ahead, None) or await self._next()
        if not chunks:
            return ()
        self._seen = chunks[-1].last_seq
        return await whole_chunks(self._store.payloads, self._conversation_id, chunks)

    async def _next(self) -> Sequence[LogChunk]:
        """The next portion, once there is one or the reader is woken."""
        chunks = await self._unseen()
        if not chunks:
            if self._live.moved and not self._live.ended:
                await self._reopen()
            elif self._live.closed:
                raise StopAsyncIteration
            else:
                await self._live.changed()
            chunks = await self._unseen()
        self._read_ahead = portions(chunks)
        return next(self._read_ahead, ())

    async def _unseen(self) -> Sequence[LogChunk]:
        """What the reader hasn't seen; the next of it from the store if it is far behind."""
        chunks = self._live.since(self._seen)
        if chunks is None:
            stored = await self._store.log.page(self._live.turn_id, self._seen)
            chunks = [chunk for chunk in stored if chunk.has_events]
            if not chunks:
                raise EventsExpired(NO_LONGER_STORED)
        return chunks

    async def _reopen(self) -> None:
        """Continues to follow the turn after a hand-off."""
        await self._opening.__aexit__(None, None, None)
        self._opening = self._open()
        self._live = await self._opening.__aenter__()

    @property
    def has_ended(self) -> bool:
        """Whether the turn's last event is here; if not, this node doesn't know how the turn continues."""
        return self._live.ended

    @property
    def is_paused(self) -> bool:
        """Whether the turn waits for its user."""
        return self._live.paused

    def wake(self) -> None:
        """Makes a waiting reader look again."""
        self._live.wake()


class Following:
    """Opens the logs of turns for their readers."""

    def __init__(self, store: Store, running: NodeTurns, mirrors: Mirrors, followers: Followers) -> None:
        self._store = store
        self._running = running
        self._mirrors = mirrors
        self._followers = followers

    async def follow(self, turn: Turn, after: int = 0, *, from_first: bool = False) -> Follower | None:
        """A turn's log for a reader who has seen its events up to `after`; None when nothing is left.

        `from_first` yields all events anyway, for a reader who must see them again. The log of a turn that
        ended long ago has been trimmed, and an imported turn never had one: it is rebuilt from the reply with
        new event numbers, so a reader who has seen part of it gets EventsExpired.
        """
        first = 0 if from_first else after
        if turn.is_active:
            return self._follower(turn, lambda: self.watch(turn.id), first)
        if 0 < turn.last_event_seq <= after or after == ALL_SEEN:
            return None
        if page := await self._store.log.page(turn.id, first):
            ended, replay = LiveLog(turn.id, stored_to=turn.last_event_seq), ()
        else:
            ended, replay = LiveLog(turn.id), await self._replayed(turn, after)
        ended.extend(replay, ended=True)
        return self._follower(turn, lambda: nullcontext(ended), first, page)

    def _follower(
        self,
        turn: Turn,
        opening: Callable[[], AbstractAsyncContextManager[LiveLog]],
        after: int,
        read_ahead: Sequence[LogChunk] = (),
    ) -> Follower:
        presence = self._followers.following(turn)
        return Follower(opening, after, self._store, turn.conversation_id, presence, read_ahead)

    def watch(self, turn_id: TurnId) -> AbstractAsyncContextManager[LiveLog]:
        """A turn's log as stored, on whichever node it runs."""
        running = self._running.get(turn_id)
        return self._mirrors.open(turn_id) if running is None else nullcontext(running.log.live)

    async def _replayed(self, turn: Turn, after: int) -> Sequence[LogChunk]:
        if after:
            raise EventsExpired(NO_LONGER_STORED)
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return await replayed(turn, reply)
