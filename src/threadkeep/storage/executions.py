"""Runs of other engines: their events until they are complete, then the turns they become.

All events of a request are added at once, or none. A complete run then becomes a turn in a transaction of its
own: what it takes is prepared before, while others write. If a crash comes in between, the events stay; a
repeated request, or the cleanup, goes on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import PayloadTooLarge
from threadkeep.domain.execution import ENDS, MOST_BYTES, MOST_PARTS, ExecutionEvent, ExecutionEventType
from threadkeep.domain.ids import FIRST_UUID, ConversationId, TurnId, UserId
from threadkeep.domain.text import size_text
from threadkeep.storage.conversations import LOCK, ConversationRows
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.imports.recorded_turns import RecordedRows, add_recorded
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length, count
from threadkeep.storage.turns import run_key, run_of

PARTS_AT_ONCE = 200
BYTES_AT_ONCE = 128 * 1024
"""What is done with more would delay others on the event loop."""


class EventRow(NamedTuple):
    """An event as it is stored, and what it adds to its run."""

    run_id: str
    event_id: str
    type: ExecutionEventType
    at: int
    text: str
    parts: int

    @property
    def size(self) -> int:
        """What its row takes."""
        return ROW_BYTES + byte_length(self.text)


class _Count(NamedTuple):
    """How much of a run has arrived."""

    parts: int = 0
    size: int = 0
    has_start: bool = False
    has_end: bool = False

    def plus(self, event: EventRow) -> "_Count":
        """With one more event. Start and end have room of their own, or a long run could never end."""
        times = 1 if event.type is ExecutionEventType.NODE_COMPLETED else 2
        grown = _Count(
            self.parts + event.parts,
            self.size + event.size,
            self.has_start or event.type is ExecutionEventType.STARTED,
            self.has_end or event.type in ENDS,
        )
        if grown.parts > times * MOST_PARTS:
            raise PayloadTooLarge(
                f"A run can have at most {MOST_PARTS} events, tools, citations and artifacts together.",
                param="events",
                details={"limit": "runParts", "most": MOST_PARTS, "runId": event.run_id},
            )
        if grown.size > times * MOST_BYTES:
            raise PayloadTooLarge(
                f"The events of a run can have at most {size_text(MOST_BYTES)}.",
                param="events",
                details={"limit": "runBytes", "most": MOST_BYTES, "runId": event.run_id},
            )
        return grown


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The status of another engine's run: its turn, once it is complete."""

    run_id: str
    turn_id: TurnId | None


@dataclass(frozen=True, slots=True)
class KeptRun(RecordedRun):
    """The same, with what its events take."""

    is_complete: bool
    """Whether its events make a turn, and it has none yet."""
    parts: int
    size: int


@dataclass(frozen=True, slots=True)
class LeftRun(KeptRun):
    """A complete run without a turn, and whose it is."""

    user_id: UserId
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class _Found:
    turns: Mapping[str, TurnId]
    new: Sequence[EventRow]
    counts: Mapping[str, _Count]
    """With the new events."""


_IN_RUNS = "conversation_id = :conversation_id AND run_id IN (SELECT value FROM json_each(:runs))"
# As an array: PostgreSQL then looks up each, however many rows it expects.
_IN_RUNS_ON_POSTGRES = """conversation_id = :conversation_id
    AND run_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:runs AS json))))"""


def _of_runs(sql: str, *, page_columns: str | None = None, returning: str = "") -> Statement:
    return Statement(
        f"{sql} WHERE {_IN_RUNS} {returning}".rstrip(),
        postgres=f"{sql} WHERE {_IN_RUNS_ON_POSTGRES} {returning}".rstrip(),
        page_columns=page_columns,
    )


# Runs that have become turns are complete; a turn's key names its run.
_TURNS = Statement(
    """SELECT idempotency_key, id FROM tk_turns WHERE conversation_id = :conversation_id
        AND idempotency_key IN (SELECT value FROM json_each(:keys))""",
    postgres="""SELECT idempotency_key, id FROM tk_turns WHERE conversation_id = :conversation_id
        AND idempotency_key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))""",
)
# The same event may arrive more than once.
_KNOWN = Statement(
    """SELECT run_id, event_id FROM tk_executions WHERE conversation_id = :conversation_id
        AND (run_id, event_id) IN (
            SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:events))""",
    postgres="""SELECT value ->> 0, value ->> 1 FROM json_array_elements(CAST(:events AS json)),
        LATERAL (SELECT 1 FROM tk_executions WHERE conversation_id = :conversation_id
            AND run_id = value ->> 0 AND event_id = value ->> 1 LIMIT 1) AS known""",
)
_COUNTS = _of_runs("SELECT run_id, parts, bytes, has_start, has_end FROM tk_runs")
# All events in one step: with a step for each, SQLite's writer would wait for the GIL each time.
_ADD = Statement(
    """INSERT INTO tk_executions (conversation_id, run_id, event_id, type, at, event)
    SELECT :conversation_id, json_extract(value, '$[0]'), json_extract(value, '$[1]'),
        json_extract(value, '$[2]'), json_extract(value, '$[3]'), json_extract(value, '$[4]')
    FROM json_each(:events)""",
    postgres="""INSERT INTO tk_executions (conversation_id, run_id, event_id, type, at, event)
    SELECT :conversation_id::uuid, value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS bigint),
        value ->> 4
    FROM json_array_elements(CAST(:events AS json))""",
)
_COUNTED = """ON CONFLICT (conversation_id, run_id) DO UPDATE SET parts = excluded.parts,
        bytes = excluded.bytes, has_start = excluded.has_start, has_end = excluded.has_end"""
_COUNT = Statement(
    f"""INSERT INTO tk_runs (conversation_id, run_id, parts, bytes, has_start, has_end)
    SELECT :conversation_id, json_extract(value, '$[0]'), json_extract(value, '$[1]'),
        json_extract(value, '$[2]'), json_extract(value, '$[3]'), json_extract(value, '$[4]')
    FROM json_each(:counts) WHERE TRUE
    {_COUNTED}""",
    postgres=f"""INSERT INTO tk_runs (conversation_id, run_id, parts, bytes, has_start, has_end)
    SELECT :conversation_id::uuid, value ->> 0, CAST(value ->> 1 AS bigint), CAST(value ->> 2 AS bigint),
        CAST(value ->> 3 AS boolean), CAST(value ->> 4 AS boolean)
    FROM json_array_elements(CAST(:counts AS json))
    {_COUNTED}""",
)
# In no order: the recording sorts them.
_EVENTS = _of_runs("SELECT run_id, event FROM tk_executions", page_columns="run_id, event")
# The runs are turns now, and their events are not read again.
_FORGET = _of_runs("DELETE FROM tk_executions")
_FORGET_COUNTS = _of_runs("DELETE FROM tk_runs", returning="RETURNING bytes")
_LEFT = Statement(
    """WITH run AS MATERIALIZED (
        SELECT conversation_id, run_id, parts, bytes FROM tk_runs
        WHERE has_start AND has_end AND (conversation_id, run_id) > (:after_conversation, :after_run)
        ORDER BY conversation_id, run_id LIMIT :limit)
    SELECT run.run_id, run.parts, run.bytes, conversation.user_id, run.conversation_id
    FROM run JOIN tk_conversations AS conversation ON conversation.id = run.conversation_id
    ORDER BY run.conversation_id, run.run_id"""
)

_decode_event = msgspec.json.Decoder(ExecutionEvent).decode


def is_large(parts: int, size: int = 0) -> bool:
    """Whether what is done with so much belongs in a thread."""
    return parts > PARTS_AT_ONCE or size > BYTES_AT_ONCE


def event_rows(events: Iterable[ExecutionEvent]) -> Sequence[EventRow]:
    """Events as rows."""
    return [EventRow(it.run_id, it.id, it.type, it.at, to_json(it), it.part_count) for it in events]


def decode_events(texts: Iterable[str]) -> Sequence[ExecutionEvent]:
    """Stored events."""
    return list(map(_decode_event, texts))


class SqlExecutions:
    """The runs of a database."""

    def __init__(self, database: Database, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows

    async def check_room(self, conversation_id: ConversationId, events: Sequence[EventRow]) -> None:
        """PayloadTooLarge if a run would have too much with these events."""
        await self._database.read(lambda: _look(conversation_id, events))

    async def add(
        self, user_id: UserId, conversation_id: ConversationId, events: Sequence[EventRow]
    ) -> Sequence[KeptRun] | None:
        """Stores events, each once; returns their runs. None without that conversation, PayloadTooLarge if a
        run would have too much.
        """
        heavy = is_large(len(events), sum(it.size for it in events))
        return await self._database.write(lambda: _add(user_id, conversation_id, events), heavy=heavy)

    async def events(
        self, conversation_id: ConversationId, run_ids: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """The stored events of runs."""
        found: dict[str, list[str]] = {run_id: [] for run_id in run_ids}
        for run_id, text in await self._database.fetch(
            _EVENTS(conversation_id=conversation_id, runs=to_json(run_ids))
        ):
            found[run_id].append(text)
        return found

    async def finish(
        self, conversation: Conversation, runs: Mapping[str, RecordedRows | None], now: int, *, heavy: bool
    ) -> Mapping[str, TurnId] | None:
        """Makes turns of runs, each once; returns the runs' turns, also those that another request made.

        None if the conversation was deleted meanwhile.
        """
        return await self._database.write(lambda: self._finish(conversation, runs, now), heavy=heavy)

    async def left(self, *, after: LeftRun | None, limit: int) -> Sequence[LeftRun]:
        """Complete runs without a turn, of all users; those after one of them."""
        at = (after.conversation_id, after.run_id) if after else (FIRST_UUID, "")
        rows = await self._database.fetch(_LEFT(after_conversation=at[0], after_run=at[1], limit=limit))
        return [
            LeftRun(
                run_id=run_id,
                turn_id=None,
                is_complete=True,
                parts=parts,
                size=size,
                user_id=user_id,
                conversation_id=conversation_id,
            )
            for run_id, parts, size, user_id, conversation_id in rows
        ]

    def _finish(
        self, before: Conversation, runs: Mapping[str, RecordedRows | None], now: int
    ) -> Plan[Mapping[str, TurnId] | None]:
        rows = yield LOCK(id=before.id, user_id=before.user_id)
        if not rows:
            return None
        conversation = self._rows.read(rows[0])
        turns = yield from _turns(conversation.id, runs)
        for run_id, prepared in runs.items():
            if prepared is not None and run_id not in turns:
                conversation = yield from add_recorded(conversation, run_id, prepared, now)
                turns[run_id] = prepared.recorded.turn.id
        done = {"conversation_id": conversation.id, "runs": to_json(list(turns))}
        freed = yield _FORGET_COUNTS(**done)
        if freed:
            yield _FORGET(**done)
            yield count(conversation.id, -sum(size for (size,) in freed))
        return turns


def _add(
    user_id: UserId, conversation_id: ConversationId, events: Sequence[EventRow]
) -> Plan[Sequence[KeptRun] | None]:
    if not (yield LOCK(id=conversation_id, user_id=user_id)):
        return None
    found = yield from _look(conversation_id, events)
    if found.new:
        rows = [(it.run_id, it.event_id, it.type, it.at, it.text) for it in found.new]
        yield _ADD(conversation_id=conversation_id, events=to_json(rows))
        grown = {it.run_id for it in found.new}
        counts = [(run_id, *count_) for run_id, count_ in found.counts.items() if run_id in grown]
        yield _COUNT(conversation_id=conversation_id, counts=to_json(counts))
        yield count(conversation_id, sum(it.size for it in found.new))
    return [_kept(run_id, found) for run_id in dict.fromkeys(it.run_id for it in events)]


def _kept(run_id: str, found: _Found) -> KeptRun:
    it = found.counts.get(run_id, _Count())
    return KeptRun(run_id, found.turns.get(run_id), it.has_start and it.has_end, it.parts, it.size)


def _look(conversation_id: ConversationId, events: Sequence[EventRow]) -> Plan[_Found]:
    """Which events are new, and what their runs have with them. Events of complete runs are ignored."""
    turns = yield from _turns(conversation_id, dict.fromkeys(it.run_id for it in events))
    open_ = [it for it in events if it.run_id not in turns]
    if not open_:
        return _Found(turns, (), {})
    names = to_json([(it.run_id, it.event_id) for it in open_])
    known = {(run_id, id_) for run_id, id_ in (yield _KNOWN(conversation_id=conversation_id, events=names))}
    runs = list(dict.fromkeys(it.run_id for it in open_))
    counts = {
        run_id: _Count(parts, size, bool(has_start), bool(has_end))
        for run_id, parts, size, has_start, has_end in (
            yield _COUNTS(conversation_id=conversation_id, runs=to_json(runs))
        )
    }
    new: list[EventRow] = []
    for event in open_:
        if (event.run_id, event.event_id) not in known:
            known.add((event.run_id, event.event_id))
            counts[event.run_id] = counts.get(event.run_id, _Count()).plus(event)
            new.append(event)
    return _Found(turns, new, counts)


def _turns(conversation_id: ConversationId, run_ids: Iterable[str]) -> Plan[dict[str, TurnId]]:
    """The turns that runs have become."""
    keys = to_json([run_key(run_id) for run_id in run_ids])
    rows = yield _TURNS(conversation_id=conversation_id, keys=keys)
    return {run_id: turn_id for key, turn_id in rows if (run_id := run_of(key)) is not None}
