"""Turns: follow them, wait for them and stop them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass

from threadkeep.aside import LogWork
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import EventsExpired, TurnInProgress, TurnNotFound
from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.log.format import DAMAGED
from threadkeep.log.portions import passing, portions
from threadkeep.log.values import whole_chunks
from threadkeep.runtime.following import ALL_SEEN, Follower
from threadkeep.runtime.node import Node
from threadkeep.services.access import own_conversation, own_turn
from threadkeep.services.payloads import shown_messages
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.turns")

UNREADABLE = "This turn's events can't be read any more. Read its message instead."


@dataclass(frozen=True, slots=True)
class Aborted:
    """The state of a turn when it was stopped."""

    turn_id: TurnId
    message: Message


class Turns:
    """The use cases of turns that have begun."""

    def __init__(self, store: Store, node: Node) -> None:
        self._store = store
        self._node = node

    async def get(self, user: User, turn_id: str) -> Turn:
        """One of the user's turns."""
        return await own_turn(self._store, user, turn_id)

    @property
    def running_count(self) -> int:
        """The number of turns running on this node."""
        return self._node.running_count

    @property
    def is_draining(self) -> bool:
        """Whether this process is shutting down and starts no more turns."""
        return self._node.runner.is_draining

    async def drain(self, grace_s: float) -> None:
        """Starts no more turns and hands off the running ones, within a grace period."""
        await self._node.drain(grace_s)

    async def follow(self, turn: Turn, after: int, *, from_first: bool = False) -> Follower | None:
        """A turn's log for a reader who has seen its events up to `after`; None if nothing is left."""
        return await self._node.follow(turn, after, from_first=from_first)

    async def read(self, turn: Turn, take: Callable[[TurnEvent], object]) -> LogWork:
        """Passes the events of a turn's log as it is stored now, with their values, to a function.

        EventsExpired if the log is damaged.
        """
        work, take_all = LogWork(), passing(take)
        try:
            async with aclosing(self._stored(turn)) as stored:
                async for chunks in stored:
                    await work.take(take_all, chunks, at_end=not turn.is_active)
        except DAMAGED as exc:
            log.exception("couldn't read the events of turn %s", turn.id)
            raise EventsExpired(UNREADABLE) from exc
        return work

    async def _stored(self, turn: Turn) -> AsyncGenerator[Sequence[LogChunk]]:
        if turn.is_active:
            async for page in self._store.log.pages(turn.id, 0):
                for chunks in portions(page):
                    yield await whole_chunks(self._store.payloads, turn.conversation_id, chunks)
        elif (log := await self._node.follow(turn, 0)) is not None:
            async with log:
                async for chunks in log:
                    yield chunks

    def changes(self, conversation_id: ConversationId) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever a turn starts in a conversation, or the conversation changes."""
        return self._node.changes(conversation_id)

    async def announce(self, type_: UserEventType, conversation: Conversation) -> None:
        """Notifies the user's pages and the conversation's followers of a change."""
        await self._node.announce(UserEvent(conversation.user_id, type_, conversation.id))

    async def announce_deleted(self, user_id: UserId, conversation_id: ConversationId) -> None:
        """Notifies the same readers that a conversation was deleted or purged."""
        await self._node.announce(UserEvent(user_id, UserEventType.CONVERSATION_DELETED, conversation_id))

    async def finished(self, turn: Turn) -> Message | None:
        """The reply of a turn once it has ended; None if it waits for its user."""
        if (log := await self._node.follow(turn, ALL_SEEN)) is not None:
            async with log:
                async for _ in log:
                    if log.is_paused:
                        return None
        return await self._whole_reply(turn)

    async def abort(self, user: User, conversation_id: str) -> Aborted | None:
        """Stops the turn running in a conversation, on any node; None if there is none."""
        conversation = await own_conversation(self._store, user, conversation_id)
        if conversation.active_turn_id is None:
            return None
        turn = await self.get(user, conversation.active_turn_id)
        if not await self._node.abort(turn.id):
            raise TurnInProgress(
                "The node running this turn isn't responding. Try again in a moment.", turn.id
            )
        return Aborted(turn.id, await self._reply(turn))

    async def _whole_reply(self, turn: Turn) -> Message:
        (reply,) = await shown_messages(self._store.payloads, [await self._reply(turn)])
        return reply

    async def _reply(self, turn: Turn) -> Message:
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return reply
