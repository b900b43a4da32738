"""Subscriptions: send a conversation's turns, one after the other, to anyone who knows its session id.

A session id is a credential and never gets into a log line.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from threadkeep.aside import LogWork
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    UNEXPECTED,
    ConversationNotFound,
    EventsExpired,
    InvalidRequest,
    StorageError,
    ThreadkeepError,
)
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import MessageId, TurnId, UserId
from threadkeep.domain.turn import Turn
from threadkeep.log.format import decode_chunk
from threadkeep.protocols.agentx.cursor import Cursor
from threadkeep.protocols.agentx.encode import AgentXTurn
from threadkeep.protocols.agentx.frames import Envelope
from threadkeep.protocols.dialect import START, Position, TurnContext
from threadkeep.runtime.following import Follower
from threadkeep.services.turns import Turns
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks
from threadkeep.wire.events import UnreadableEvent

log = logging.getLogger("threadkeep.sessions")

LOOK_EVERY_S = 5.0
LOOKS_A_SECOND = 50  # of all subscriptions together: a client may follow thousands
TRY_AGAIN_S = 1.0
TURNS_AT_ONCE = 50

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


@dataclass(frozen=True, slots=True)
class SessionReader:
    """Callbacks to the reader of a session. They may wait as long as it needs; no turn waits for them."""

    send: Callable[[Cursor, Envelope], Awaitable[None]]
    fail: Callable[[ThreadkeepError], Awaitable[None]]
    """Something can't be sent; what follows will be."""
    move: Callable[[MessageId | None], Awaitable[None]]
    """Another branch has become the active path; it ends with this message."""
    end: Callable[[ThreadkeepError], Awaitable[None]]
    """The subscription has ended by itself."""


class PollPace:
    """How often each subscription looks for changes: the more there are, the less often."""

    def __init__(self) -> None:
        self._subscriptions = 0

    def add(self, subscription: "Subscription") -> None:
        """Counts a subscription until it ends."""
        self._subscriptions += 1
        subscription.when_ended(self._forget_one)

    def _forget_one(self) -> None:
        self._subscriptions -= 1

    @property
    def every_s(self) -> float:
        """How long a subscription waits between two looks."""
        return max(LOOK_EVERY_S, self._subscriptions / LOOKS_A_SECOND)


class Sessions:
    """Finds sessions and follows them."""

    def __init__(self, store: Store, turns: Turns, pace: PollPace) -> None:
        self._store = store
        self._turns = turns
        self._pace = pace

    async def find(self, session_id: str) -> Conversation:
        """The conversation that a session id opens, any user's."""
        conversation = None
        if _SESSION_ID.fullmatch(session_id):
            conversation = await self._store.conversations.by_session(session_id)
        if conversation is None:
            raise ConversationNotFound("Session not found.")
        return conversation

    async def follow(
        self, conversation: Conversation, after: Cursor | None, reader: SessionReader
    ) -> "Subscription":
        """Sends a session's envelopes after a cursor, or from the start of the running turn."""
        first = after.turn_id if after else conversation.active_turn_id
        sent_to_seq = conversation.last_seq
        if first is not None:
            sent_to_seq = await self._reply_seq(conversation, TurnId(first)) - 1
        subscription = Subscription(
            self._store, self._turns, conversation, reader, sent_to_seq, after, self._pace
        )
        self._pace.add(subscription)
        return subscription

    async def _reply_seq(self, conversation: Conversation, turn_id: TurnId) -> int:
        turn = await self._store.turns.get(conversation.user_id, turn_id)
        if turn is not None and turn.conversation_id == conversation.id:
            reply = await self._store.messages.get(conversation.id, turn.assistant_message_id)
            if reply is not None:
                return reply.seq
        raise InvalidRequest("This isn't a cursor of this session.", param="afterCursor")


class Subscription:
    """One reader of one session, until it is closed or the session ends."""

    def __init__(
        self,
        store: Store,
        turns: Turns,
        conversation: Conversation,
        reader: SessionReader,
        sent_to_seq: int,
        last_sent: Cursor | None,
        pace: PollPace,
    ) -> None:
        self._store = store
        self._turns = turns
        self._conversation = conversation
        self._reader = reader
        self._sent_to_seq = sent_to_seq
        """Turns whose replies have numbers up to this one have been sent."""
        self._last_sent = last_sent
        self._pace = pace
        self._more = asyncio.Event()
        self._sending = asyncio.create_task(self._send())
        self._watching = asyncio.create_task(self._watch())

    @property
    def owner_id(self) -> UserId:
        """The session's owner."""
        return self._conversation.user_id

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls `call` once it has ended, for whatever reason."""
        self._watching.add_done_callback(lambda _: call())

    async def close(self) -> None:
        """Ends it; nothing more is sent."""
        await end_tasks(self._watching, self._sending)

    async def _watch(self) -> None:
        """Notices a new turn, another active branch, or the end of the session, by signals and by polling."""
        try:
            await self._notice_changes()
        except Exception:
            log.exception("couldn't watch conversation %s", self._conversation.id)
            reason = _internal_error()
        else:
            reason = ConversationNotFound("This session is closed.")
        await end_tasks(self._sending)
        await self._reader.end(reason)

    async def _notice_changes(self) -> None:
        """Returns when the session has ended."""
        known = self._conversation
        with self._turns.changes(self._conversation.id) as changed:
            while True:
                changed.clear()
                try:
                    now = await self._store.conversations.by_session(self._conversation.session_id.reveal())
                    if now is None:
                        break
                    if now.last_seq > known.last_seq:
                        self._more.set()
                    elif now.tip_id != known.tip_id:
                        await self._reader.move(now.tip_id)
                    known = now
                except StorageError as exc:
                    log.warning("couldn't read conversation %s: %s", self._conversation.id, exc.message)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pace.every_s):
                        await changed.wait()

    async def _send(self) -> None:
        while True:
            self._more.clear()
            try:
                if await self._send_begun():
                    await self._more.wait()
                    continue
            except ThreadkeepError as exc:
                log.warning("couldn't read conversation %s: %s", self._conversation.id, exc.message)
            except Exception:
                log.exception("couldn't send conversation %s", self._conversation.id)
                await end_tasks(self._watching)
                await self._reader.end(_internal_error())
                return
            await asyncio.sleep(TRY_AGAIN_S)

    async def _send_begun(self) -> bool:
        """Sends all turns that have begun; False if one of them could not be sent to its end yet."""
        while begun := await self._store.turns.begun_after(
            self._conversation.id, self._sent_to_seq, limit=TURNS_AT_ONCE
        ):
            for turn, reply_seq in begun:
                try:
                    if not await self._send_turn(turn):
                        return False
                except (EventsExpired, UnreadableEvent) as exc:
                    await self._reader.fail(exc)
                self._sent_to_seq = reply_seq
        return True

    async def _send_turn(self, turn: Turn) -> bool:
        """Sends the rest of a turn to the reader; returns whether it has ended."""
        encoder, work = AgentXTurn(TurnContext.of(turn, self._conversation)), LogWork()
        last = self._last_sent
        after = last.position if last and last.turn_id == turn.id else START

        def unsent(chunks: Sequence[LogChunk]) -> Sequence[tuple[Cursor, Envelope]]:
            return [it for chunk in chunks for it in _envelopes(encoder, chunk, after)]

        log = await self._follow(turn)
        if log is None:
            return True
        async with log:
            async for chunks in log:
                for cursor, envelope in await work.take(unsent, chunks, at_end=log.has_ended):
                    await self._reader.send(cursor, envelope)
                    self._last_sent = cursor
        # If it has not, its node could not store the end: the node that takes over the turn will.
        return log.has_ended

    async def _follow(self, turn: Turn) -> Follower | None:
        """The turn's log from its first event: the message's end repeats its whole text."""
        last = self._last_sent
        if last is None or last.turn_id != turn.id:
            return await self._turns.follow(turn, 0)
        try:
            return await self._turns.follow(turn, last.position.seq, from_first=True)
        except EventsExpired:
            if last.seq < turn.last_event_seq:
                raise
            return None


def _envelopes(encoder: AgentXTurn, chunk: LogChunk, after: Position) -> Iterator[tuple[Cursor, Envelope]]:
    """The envelopes of a chunk for a reader who may have some of them."""
    for event in decode_chunk(chunk.events):
        envelopes = encoder.envelopes(event)
        if event.seq <= after.seq:
            continue
        seen = after.frames if event.seq == after.seq + 1 else 0
        for index, envelope in enumerate(envelopes[seen:], seen):
            yield Cursor(event.turn_id, event.seq, index), envelope


def _internal_error() -> ThreadkeepError:
    return ThreadkeepError(UNEXPECTED)
