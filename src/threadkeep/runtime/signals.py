"""Signals between nodes over the bus. A signal may be lost, so those who wait for one also poll."""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace

from threadkeep.domain.conversation import Conversation, EndedTurn
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.turn import Turn
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.ports.bus import Bus, Signal
from threadkeep.runtime.user_events import UserEvents
from threadkeep.storage.turn_log import HeldTurn

log = logging.getLogger("threadkeep.turns")

WROTE, ABORT, DECIDED, CHANGED, NEEDS = "wrote", "abort", "answered", "changed", "needs"


class Signals:
    """Sends this node's signals and receives those of all nodes, including its own."""

    def __init__(
        self,
        bus: Bus,
        user_events: UserEvents,
        *,
        on_wrote: Callable[[TurnId], object],
        on_abort: Callable[[TurnId], object],
        on_decided: Callable[[TurnId], object],
        on_needed: Callable[[str], object],
    ) -> None:
        self._bus = bus
        self._user_events = user_events
        self._on_wrote = on_wrote
        self._on_abort = on_abort
        self._on_decided = on_decided
        self._on_needed = on_needed
        self._waiting: dict[ConversationId, set[asyncio.Event]] = {}
        self._unsubscribe = bus.subscribe(self._hear)

    async def created(self, conversation: Conversation) -> None:
        """A conversation was stored with its first turn."""
        await self.changed(
            UserEvent(conversation.user_id, UserEventType.CONVERSATION_CREATED, conversation.id)
        )

    async def began(self, held: HeldTurn) -> None:
        """A turn's first event is stored, so readers can follow it; or the turn continues."""
        await self._moved(held, UserEventType.TURN_STARTED)

    async def asked(self, held: HeldTurn, request_id: str) -> None:
        """A turn asks its user something."""
        event = _event(UserEventType.APPROVAL_OPENED, held.conversation, held.turn)
        await self._user_events.publish(replace(event, request_id=request_id))

    async def paused(self, held: HeldTurn) -> None:
        """A turn waits for its user."""
        await self._moved(held, UserEventType.TURN_PAUSED)

    async def ended(self, ended: EndedTurn, last: LogChunk) -> None:
        """A turn has ended."""
        await self.wrote([last])
        await self._user_events.publish(_event(UserEventType.TURN_ENDED, ended.conversation, ended.turn))

    async def wrote(self, chunks: Iterable[LogChunk]) -> None:
        """Chunks of logs are stored."""
        await self._announce([f"{WROTE} {chunk.turn_id}" for chunk in chunks])

    async def decided(self, turn_id: TurnId) -> None:
        """There may be input from a turn's user: a decision, or a message that steers it."""
        await self._announce([f"{DECIDED} {turn_id}"])

    async def needs(self, key: str) -> None:
        """A turn that no node runs needs a program."""
        await self._announce([f"{NEEDS} {key}"])

    async def abort(self, turn_id: TurnId) -> None:
        """Asks the node that runs a turn to abort it."""
        await self._bus.publish([f"{ABORT} {turn_id}"])

    async def changed(self, event: UserEvent) -> None:
        """A conversation, or something in it, has changed."""
        if event.conversation_id is not None:
            await self._announce([f"{CHANGED} {event.conversation_id}"])
        await self._user_events.publish(event)

    @contextmanager
    def changes(self, conversation_id: ConversationId) -> Generator[asyncio.Event]:
        """An event that is set when a turn begins in a conversation or a change of it is announced."""
        changed = asyncio.Event()
        self._waiting.setdefault(conversation_id, set()).add(changed)
        try:
            yield changed
        finally:
            waiting = self._waiting[conversation_id]
            waiting.remove(changed)
            if not waiting:
                del self._waiting[conversation_id]

    def close(self) -> None:
        """Stops receiving."""
        self._unsubscribe()

    async def _moved(self, held: HeldTurn, type_: UserEventType) -> None:
        await self._announce([f"{WROTE} {held.turn.id}", f"{CHANGED} {held.conversation.id}"])
        await self._user_events.publish(_event(type_, held.conversation, held.turn))

    async def _announce(self, signals: Iterable[Signal]) -> None:
        try:
            await self._bus.publish(signals)
        except Exception:  # waiters also poll, and this must not end a turn
            log.exception("couldn't announce stored events")

    def _hear(self, signal: Signal) -> None:
        kind, _, name = signal.partition(" ")
        if kind == CHANGED:
            for changed in self._waiting.get(ConversationId(name), ()):
                changed.set()
        elif kind == NEEDS:
            self._on_needed(name)
        elif kind == DECIDED:
            self._on_decided(TurnId(name))
        elif kind == ABORT:
            self._on_abort(TurnId(name))
        elif kind == WROTE:
            self._on_wrote(TurnId(name))


def _event(type_: UserEventType, conversation: Conversation, turn: Turn) -> UserEvent:
    return UserEvent(conversation.user_id, type_, conversation.id, turn.id)
