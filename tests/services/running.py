"""Turns on nodes within the test: scripted events, and a store that fails when it is told to."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import replace

from tests.making import ALICE, NOW, keep_agent, keep_conversation, opened
from threadkeep.domain.agent import Code
from threadkeep.domain.conversation import BegunTurn, EndedTurn
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import Done, EventBody, Failed, LogChunk, TurnEvent
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Message, Usage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import BegunWith, Lease, Turn, TurnStatus
from threadkeep.engine.journal import JournalEntry
from threadkeep.engine.loop import HandOff, TurnStep
from threadkeep.engine.stop import Stopped
from threadkeep.log.format import decode_chunk
from threadkeep.log.live import LiveLog
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.following import Follower
from threadkeep.runtime.node import Node
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.storage.conversations import ConversationRows
from threadkeep.storage.database.connector import Database
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import NEVER_MS, HeldTurn, SqlTurnLog
from threadkeep.storage.turns import SqlTurns

AWAY = StorageUnavailable("The database is away.")


class Fault:
    """What happens to the next writes: `before` loses the write, `after` only its answer."""

    def __init__(self) -> None:
        self.plan: list[str] = []
        self.away = False
        self.stalled = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    def next(self) -> str:
        """What happens to this write."""
        return "before" if self.away else self.plan.pop(0) if self.plan else ""

    async def hold(self) -> None:
        """Waits at the gate, if it is shut."""
        self.reached.set()
        await self.gate.wait()


class FaultyLog(SqlTurnLog):
    """A log whose writes go as the fault says."""

    def __init__(self, database: Database, fault: Fault) -> None:
        super().__init__(database, ConversationRows(SecretBox()))
        self._fault = fault

    async def append(
        self, chunks: Sequence[tuple[LogChunk, int]], receipts: Sequence[tuple[TurnReceipt, int]] = ()
    ) -> set[TurnId]:
        """Keeps chunks, or not."""
        await self._fault.hold()
        what = self._fault.next()
        if what == "before":
            raise AWAY
        accepted = await super().append(chunks, receipts)
        if what == "after":
            raise AWAY
        return accepted

    async def renew(self, node_id: str, turn_ids: Iterable[TurnId], length_ms: int) -> dict[TurnId, bool]:
        """Renews leases, unless the node is stalled."""
        if self._fault.stalled or self._fault.away:
            raise AWAY
        return await super().renew(node_id, turn_ids, length_ms)

    async def abandoned(
        self,
        node_id: str,
        *,
        alone: bool,
        limit: int,
        codes: Sequence[Code] = (),
        within_ms: int = NEVER_MS,
    ) -> Sequence[TurnId]:
        """Turns of the dead, unless the node is stalled."""
        if self._fault.stalled or self._fault.away:
            raise AWAY
        return await super().abandoned(node_id, alone=alone, limit=limit, codes=codes, within_ms=within_ms)


class FaultyTurns(SqlTurns):
    """Turns whose beginning and end go as the faults say."""

    def __init__(self, database: Database, beginning: Fault, fault: Fault) -> None:
        super().__init__(database, ConversationRows(SecretBox()))
        self._beginning = beginning
        self._fault = fault

    async def begin(self, begun: BegunTurn) -> None:
        """Keeps a begun turn, or not."""
        await self._beginning.hold()
        what = self._beginning.next()
        if what == "before":
            raise AWAY
        await super().begin(begun)
        if what == "after":
            raise AWAY

    async def end(
        self,
        ended: EndedTurn,
        chunk: LogChunk,
        fence: int,
        *,
        receipts: Sequence[TurnReceipt] = (),
        queue_version: int = 0,
        next_turn: BegunTurn | None = None,
        state: bytes | None = None,
    ) -> None:
        """Keeps a turn's end, or not."""
        await self._fault.hold()
        what = self._fault.next()
        if what == "before":
            raise AWAY
        await super().end(
            ended,
            chunk,
            fence,
            receipts=receipts,
            queue_version=queue_version,
            next_turn=next_turn,
            state=state,
        )
        if what == "after":
            raise AWAY


def faulty(
    store: Store,
    database: Database,
    *,
    log: Fault | None = None,
    beginning: Fault | None = None,
    turns: Fault | None = None,
) -> Store:
    """A store on the same database that fails as told."""
    return replace(
        store,
        log=FaultyLog(database, log or Fault()),
        turns=FaultyTurns(database, beginning or Fault(), turns or Fault()),
    )


async def begin(store: Store, lease: Lease) -> BegunTurn:
    """A turn in a conversation of its own, begun by whoever holds the lease."""
    begun = await make_begun(store)
    await store.turns.begin(opened(begun, lease))
    return begun


async def make_begun(store: Store, begun_with: BegunWith | None = None) -> BegunTurn:
    """A turn in a conversation of its own, not stored yet."""
    conversation = await keep_conversation(store, await keep_agent(store))
    return conversation.begin_turn("Why?", NOW, model="scripted", begun_with=begun_with)


class Script:
    """A turn that says what the test tells it to say."""

    def __init__(self, begun: BegunTurn) -> None:
        self._begun = begun
        self._bodies: asyncio.Queue[EventBody | JournalEntry | Exception] = asyncio.Queue()
        self.closed = False

    def say(self, *bodies: EventBody | JournalEntry | Exception) -> None:
        """What comes next."""
        for body in bodies:
            self._bodies.put_nowait(body)

    @property
    def unsaid(self) -> int:
        """How much of it the turn has not come to."""
        return self._bodies.qsize()

    def done(self, status: str = "COMPLETED") -> Done:
        """The end."""
        reply = self._begun.assistant_message.id
        return Done("COMPLETED" if status == "COMPLETED" else "CANCELLED", reply, Usage(1, 1), "end_turn")

    async def steps(self, held: HeldTurn, control: TurnControl) -> AsyncGenerator[TurnStep]:
        """Plays it."""
        try:
            while True:
                try:
                    body = await control.stop.guard(self._bodies.get)
                except Stopped as stopped:
                    if stopped.reason == "abort":
                        yield self.done("CANCELLED")
                    elif stopped.reason == "hand_off":
                        yield HandOff()
                    else:
                        yield Failed("INTERRUPTED", "Stopped.", retryable=True)
                    return
                if isinstance(body, Exception):
                    raise body
                yield body
                if isinstance(body, Done | Failed):
                    return
        finally:
            self.closed = True


async def run(node: Node, store: Store, begun_with: BegunWith | None = None) -> tuple[BegunTurn, Script]:
    """A scripted turn that runs on a node."""
    begun = await make_begun(store, begun_with)
    script = Script(begun)
    await node.runner.begin(begun, TurnCourse(script.steps))
    return begun, script


async def stored_events(store: Store, turn_id: TurnId) -> list[TurnEvent]:
    """All that the log holds; its numbers have no gap and no repeat."""
    events = [event for chunk in await store.log.read(turn_id, 0) for event in decode_chunk(chunk.events)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return events


def shown_events(live: LiveLog, after: int = 0) -> list[TurnEvent]:
    """All that a follower has been shown."""
    chunks = live.since(after)
    assert chunks is not None, "only the store has all of them"
    return [event for chunk in chunks for event in decode_chunk(chunk.events)]


async def open_log(node: Node, turn: Turn, after: int = 0) -> Follower:
    """The log of a turn that was running when its value was made."""
    log = await node.follow(turn, after)
    assert log
    return log


async def rest_of(log: Follower) -> list[TurnEvent]:
    """All events that a reader has not been given yet, until no more come."""
    return [event async for chunks in log for chunk in chunks for event in decode_chunk(chunk.events)]


async def follow(node: Node, turn: Turn) -> list[TurnEvent]:
    """Follows a turn to its end."""
    async with await open_log(node, turn) as log:
        events = await rest_of(log)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return events


async def until_shown(node: Node, turn: Turn, seq: int) -> None:
    """Until an event has been shown."""
    async with await open_log(node, turn, seq - 1) as log:
        async for chunks in log:
            if chunks:
                return


async def reply_of(store: Store, begun: BegunTurn) -> Message:
    """The reply of a turn that has ended: the turn, the reply and the conversation agree about it."""
    reply = await store.messages.get(begun.conversation.id, begun.assistant_message.id)
    turn = await store.turns.get(ALICE, begun.turn.id)
    conversation = await store.conversations.get(ALICE, begun.conversation.id)
    assert reply
    assert turn
    assert conversation
    assert conversation.active_turn_id is None
    assert turn.status is TurnStatus(reply.status)
    events = await stored_events(store, begun.turn.id)
    assert [event.is_terminal for event in events] == [False] * (len(events) - 1) + [True]
    assert turn.last_event_seq == events[-1].seq
    return reply
