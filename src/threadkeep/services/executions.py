"""Turns that ran in another engine and become messages here."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound, InvalidRequest, PayloadTooLarge
from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.domain.execution import ExecutedTool, ExecutionEvent
from threadkeep.domain.ids import ConversationId, PayloadId, TurnId, UserId, is_uuid
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEventType
from threadkeep.engine.large_values import LargeValues, TooLarge, is_large_value
from threadkeep.fair_slots import FairSlots
from threadkeep.log.format import encode_chunk
from threadkeep.log.replies import events_of
from threadkeep.loops import SomeFailed, do_each
from threadkeep.services.history import History
from threadkeep.services.recording import record
from threadkeep.services.turns import Turns
from threadkeep.storage.executions import (
    PARTS_AT_ONCE,
    EventRow,
    KeptRun,
    LeftRun,
    RecordedRun,
    decode_events,
    event_rows,
    is_large,
)
from threadkeep.storage.imports.recorded_turns import Recorded, RecordedRows, recorded_rows
from threadkeep.storage.store import Store

MOST_EVENTS_AT_ONCE = 1_000
RECORDED_AT_ONCE = 2
"""How many large requests and large runs a node works on at once; one of each user."""
LEFT_AT_ONCE = 100
LOGGED_AT_ONCE = 200
"""Events of a chunk of the log."""
ROWS_OF_A_TURN = 10
"""Besides those of its calls and its events."""

T = TypeVar("T")


class Executions:
    """The use cases of recorded runs."""

    def __init__(self, store: Store, turns: Turns, history: History, clock: Clock) -> None:
        self._store = store
        self._turns = turns
        self._history = history
        self._clock = clock
        self._slots = FairSlots(RECORDED_AT_ONCE, of_one=1)

    async def record(
        self, user: User, conversation_id: str, events: Sequence[ExecutionEvent]
    ) -> Sequence[RecordedRun]:
        """Stores events, in any order and any number of times; a complete run becomes a turn, once."""
        if len(events) > MOST_EVENTS_AT_ONCE:
            raise InvalidRequest(
                f"You can send at most {MOST_EVENTS_AT_ONCE} events at once.", param="events"
            )
        id_ = ConversationId(conversation_id.lower())
        conversation = await self._store.conversations.get(user.id, id_) if is_uuid(id_) else None
        if conversation is None:
            raise ConversationNotFound
        aside = is_large(sum(it.part_count for it in events))
        async with self._turn(user.id, aside=aside):
            rows = await self._rows(conversation, events, aside=aside)
            kept = await self._store.executions.add(user.id, id_, rows)
        if kept is None:  # deleted meanwhile
            raise ConversationNotFound
        turns = await self._finish(conversation, [it for it in kept if it.is_complete])
        runs = [RecordedRun(it.run_id, it.turn_id or turns.get(it.run_id)) for it in kept]
        if any(run.turn_id for run in runs):
            await self._announce(conversation)
        return runs

    async def finish_left(self) -> None:
        """Makes turns of the runs that a crash has left complete, but without one."""
        after: LeftRun | None = None
        some_failed = False
        while found := await self._store.executions.left(after=after, limit=LEFT_AT_ONCE):
            steps = {f"recording of run {it.run_id!r}": partial(self._finish_one, it) for it in found}
            some_failed |= bool(await do_each(steps))
            after = found[-1]
        if some_failed:
            raise SomeFailed

    async def _finish_one(self, run: LeftRun) -> None:
        conversation = await self._store.conversations.get(run.user_id, run.conversation_id)
        if conversation is not None and await self._finish(conversation, [run]):
            await self._announce(conversation)

    async def _announce(self, conversation: Conversation) -> None:
        self._history.note(conversation.id)
        await self._turns.announce(UserEventType.CONVERSATION_CHANGED, conversation)

    async def _rows(
        self, conversation: Conversation, events: Sequence[ExecutionEvent], *, aside: bool
    ) -> Sequence[EventRow]:
        """Events as they are stored: with their files, and large values moved to the payload store."""
        needs = await _make(lambda: _needs(events), aside=aside)
        own = await self._store.payloads.files(conversation.id, needs.files)
        if needs.large:  # a refused event leaves no values behind
            await self._store.executions.check_room(conversation.id, [_without_text(it) for it in events])
        tools = await self._set_aside(conversation.id, events, needs.large)
        return await _make(
            lambda: event_rows(_complete(it, own, tools.get(at)) for at, it in enumerate(events)),
            aside=aside,
        )

    async def _set_aside(
        self, id_: ConversationId, events: Sequence[ExecutionEvent], large: Sequence[int]
    ) -> Mapping[int, tuple[ExecutedTool, ...]]:
        """The tools of the events with large values, without these; like those of our own turns."""
        large_values = LargeValues(id_, self._clock, self._store.payloads.add)
        try:
            return {
                at: tuple([await _without_large(tool, large_values) for tool in events[at].tools])
                for at in large
            }
        except TooLarge as exc:
            raise PayloadTooLarge(str(exc), param="tools") from exc

    async def _finish(self, conversation: Conversation, runs: Sequence[KeptRun]) -> Mapping[str, TurnId]:
        """Makes turns of complete runs; several small ones share a transaction."""
        turns: dict[str, TurnId] = {}
        for some in _batches(runs):
            aside = is_large(sum(it.parts for it in some), sum(it.size for it in some))
            async with self._turn(conversation.user_id, aside=aside):
                found = await self._finish_some(conversation, [it.run_id for it in some], aside=aside)
            if found is None:  # deleted meanwhile
                raise ConversationNotFound
            turns |= found
        return turns

    async def _finish_some(
        self, conversation: Conversation, run_ids: Sequence[str], *, aside: bool
    ) -> Mapping[str, TurnId] | None:
        texts = await self._store.executions.events(conversation.id, run_ids)
        prepared = await _make(
            lambda: {run_id: _recorded(conversation, its) for run_id, its in texts.items()}, aside=aside
        )
        return await self._store.executions.finish(conversation, prepared, self._clock(), heavy=aside)

    def _turn(self, user_id: UserId, *, aside: bool) -> AbstractAsyncContextManager[None]:
        """Users take turns with what is large, so that only few such writes wait for the database at once."""
        return self._slots.slot(user_id) if aside else nullcontext()


async def _make(make: Callable[[], T], *, aside: bool) -> T:
    """Makes something, in a thread if it is large."""
    return await asyncio.to_thread(make) if aside else make()


@dataclass(frozen=True, slots=True)
class _Needs:
    """What events need from the store before they can be stored themselves."""

    files: Set[PayloadId]
    """Those that could be files of ours."""
    large: Sequence[int]
    """Which of the events have tools with large values."""


def _needs(events: Sequence[ExecutionEvent]) -> _Needs:
    named = {it for event in events for it in event.artifact_ids}
    large = [
        at
        for at, event in enumerate(events)
        if any(is_large_value(it.arguments) or is_large_value(it.result) for it in event.tools)
    ]
    return _Needs({PayloadId(it.lower()) for it in named if is_uuid(it)}, large)


def _without_text(event: ExecutionEvent) -> EventRow:
    return EventRow(event.run_id, event.id, event.type, event.at, "", event.part_count)


def _complete(
    event: ExecutionEvent, own: Mapping[PayloadId, Payload], tools: tuple[ExecutedTool, ...] | None
) -> ExecutionEvent:
    """An event with its files: those of this conversation, and ids that only the engine knows.

    The id of a file that belongs to somebody else is such an id, too.
    """
    if not event.artifact_ids and tools is None:
        return event

    def file(id_: str) -> FilePart:
        payload = own.get(PayloadId(id_.lower()))
        return _elsewhere(id_) if payload is None else _file(payload)

    files = tuple(map(file, event.artifact_ids))
    return replace(event, files=files, tools=event.tools if tools is None else tools)


def _batches(runs: Sequence[KeptRun]) -> Iterator[Sequence[KeptRun]]:
    """Runs that become turns together: a large one alone, and some hundred rows of small ones."""
    batch: list[KeptRun] = []
    for run in runs:
        rows = sum(it.parts + ROWS_OF_A_TURN for it in batch)
        if batch and (rows + run.parts > PARTS_AT_ONCE or is_large(0, sum(it.size for it in (*batch, run)))):
            yield batch
            batch = []
        batch.append(run)
    if batch:
        yield batch


def _recorded(conversation: Conversation, texts: Sequence[str]) -> RecordedRows | None:
    """A run's turn with its log; None if another request has made it meanwhile."""
    found = record(conversation.id, decode_events(texts))
    if found is None:
        return None
    log = list(events_of(found.turn, found.reply))
    turn = replace(found.turn, last_event_seq=len(log))
    chunks = list(_chunks(turn.id, log))
    return recorded_rows(Recorded(turn, found.user_message, found.reply, found.title, chunks), conversation)


def _chunks(turn_id: TurnId, log: Sequence[TurnEvent]) -> Iterator[LogChunk]:
    for first in range(0, len(log), LOGGED_AT_ONCE):
        some = log[first : first + LOGGED_AT_ONCE]
        yield LogChunk(turn_id, first + 1, first + len(some), encode_chunk(some))


def _file(payload: Payload) -> FilePart:
    return FilePart(
        file_id=payload.id,
        file_name=payload.file_name or "",
        media_type=payload.media_type,
        size=payload.size,
    )


def _elsewhere(file_id: str) -> FilePart:
    return FilePart(file_id=PayloadId(file_id), is_elsewhere=True)


async def _without_large(tool: ExecutedTool, large_values: LargeValues) -> ExecutedTool:
    refs = await large_values.store({"arguments": tool.arguments, "result": tool.result})
    return replace(
        tool,
        arguments={} if "arguments" in refs else tool.arguments,
        result=None if "result" in refs else tool.result,
        refs=refs,
    )
