"""Notifies a user's pages on every node of changes to their data.

Events are sent, not stored: a reader who was disconnected for longer than a node remembers reloads
everything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from threadkeep.domain.errors import ShuttingDown
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.user_events import UserEvent
from threadkeep.ports.bus import MISSED, Bus, Signal

log = logging.getLogger("threadkeep.user_events")

MOST_REMEMBERED = 4096
MOST_UNREAD = 1024
"""How many events wait for a slow reader; then they are dropped, and the reader reloads everything."""

USER = "user"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[str, int, UserEvent]).decode


MOST_OPEN_S = 30 * 60
"""Then a reader must reconnect and authenticate again."""

UserEventWithId = tuple[str, UserEvent | None]
"""An id from which a reader can continue, and an event; None means that some may be missing."""

Concerns = Callable[[UserEvent], Awaitable[bool]]
"""Whether an event concerns a reader."""


class UserEvents:
    """Sends events to their readers on all nodes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._readers: dict[UserId, set[UserEventReader]] = {}
        self._is_closed = False
        self._node = new_uuid()
        self._published_count = 0
        self._heard: dict[str, int] = {}
        self._forget()
        self._unsubscribe = bus.subscribe(self._hear)

    async def publish(self, *events: UserEvent) -> None:
        """Announces a stored change. A failure to do so is only logged."""
        signals = [f"{USER} {_encode(self._numbered(event)).decode()}" for event in events]
        try:
            await self._bus.publish(signals)
        except Exception:
            log.exception("couldn't notify a user's pages")

    def read(self, user_id: UserId, after: str | None, concerns: Concerns | None = None) -> "UserEventReader":
        """A user's events from now on, or after one of them; within `async with`.

        If `concerns` is given, only those that concern the reader.
        """
        if self._is_closed:
            raise ShuttingDown("This process is shutting down. Try another node.")
        return UserEventReader(self, user_id, after, concerns)

    def close(self) -> None:
        """Ends all readers; they continue on another node."""
        if not self._is_closed:
            self._is_closed = True
            self._unsubscribe()
            for reader in self._all_readers():
                reader.close()

    def enter(self, reader: "UserEventReader", after: str | None) -> Sequence[UserEventWithId]:
        """Adds a reader; returns the events that it missed."""
        self._readers.setdefault(reader.user_id, set()).add(reader)
        run, _, number = (after or "").partition("-")
        first = int(number) if run == self._run and number.isdecimal() else None
        if first is None or first > self._count or (self._recent and first < self._recent[0][0] - 1):
            return [(self._id(self._count), None)]
        return [(self._id(at), it) for at, it in self._recent if at > first and it.user_id == reader.user_id]

    def leave(self, reader: "UserEventReader") -> None:
        """The reader gets no more events."""
        readers = self._readers[reader.user_id]
        readers.remove(reader)
        if not readers:
            del self._readers[reader.user_id]

    def _hear(self, signal: Signal) -> None:
        kind, _, what = signal.partition(" ")
        if kind == MISSED:
            self._forget()
            for reader in self._all_readers():
                reader.take((self._id(0), None))
        elif kind == USER:
            try:
                node, number, event = _decode(what)
            except msgspec.MsgspecError:
                return  # from a node of a later version: unknown here
            if number <= self._heard.get(node, 0):
                return  # a bus may deliver it twice
            self._heard[node] = number
            self._count += 1
            self._recent.append((self._count, event))
            for reader in self._readers.get(event.user_id, ()):
                reader.take((self._id(self._count), event))

    def _numbered(self, event: UserEvent) -> tuple[str, int, UserEvent]:
        self._published_count += 1
        return self._node, self._published_count, event

    def _forget(self) -> None:
        """Earlier events become invalid."""
        self._run = new_uuid().replace("-", "")
        self._count = 0
        self._recent: deque[tuple[int, UserEvent]] = deque(maxlen=MOST_REMEMBERED)

    def _id(self, number: int) -> str:
        return f"{self._run}-{number}"

    def _all_readers(self) -> "list[UserEventReader]":
        return [reader for readers in self._readers.values() for reader in readers]


class UserEventReader:
    """A reader of one user's events. Yields an empty sequence when woken."""

    has_ended = True
    """An end isn't an error: the reader reconnects."""
    is_paused = False

    def __init__(
        self, events: UserEvents, user_id: UserId, after: str | None, concerns: Concerns | None
    ) -> None:
        self.user_id = user_id
        self._concerns = concerns
        self._events = events
        self._after = after
        self._unread: list[UserEventWithId] = []
        self._woken = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        self._unread += self._events.enter(self, self._after)
        self._timer = asyncio.get_running_loop().call_later(MOST_OPEN_S, self.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._events.leave(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[UserEventWithId]:
        if not self._unread and not self._is_closed:
            await self._woken.wait()
        self._woken.clear()
        unread, self._unread = self._unread, []
        if not unread and self._is_closed:
            raise StopAsyncIteration
        if self._concerns is None:
            return unread
        return [(id_, event) for id_, event in unread if event is None or await self._concerns(event)]

    def take(self, entry: UserEventWithId) -> None:
        """Passes the reader its next events."""
        if len(self._unread) >= MOST_UNREAD:
            entry = (entry[0], None)
        if entry[1] is None:
            self._unread.clear()
        self._unread.append(entry)
        self.wake()

    def wake(self) -> None:
        """Makes a waiting reader look again."""
        self._woken.set()

    def close(self) -> None:
        """Ends the reader."""
        self._is_closed = True
        self.wake()
