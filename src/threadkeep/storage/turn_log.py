"""The event logs of turns in the database, and who may write them.

One node writes a turn; it holds a lease that expires unless renewed. Every write names the lease's fence, so
a node whose turn was taken over can no longer write it.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from threadkeep.domain.agent import Code
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId
from threadkeep.domain.ledger import Charge
from threadkeep.domain.message import Message
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Lease, OpenStep, Turn
from threadkeep.storage.code.programs import (
    AWAITED_MS,
    GIVEN,
    GIVEN_ON_POSTGRES,
    READY_MS,
    codes_json,
)
from threadkeep.storage.conversations import OF_TURN as CONVERSATION_OF_TURN
from threadkeep.storage.conversations import ConversationRows
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Rows, Statement
from threadkeep.storage.messages import REPLY_OF_TURN, to_message
from threadkeep.storage.receipts import add_receipts
from threadkeep.storage.spending.charges import add_charges, charging, ledger_rows
from threadkeep.storage.text_bytes import ROW_BYTES
from threadkeep.storage.turns import LOG_VERSION, PLAIN_LOG_VERSION, TURN_COLUMNS, to_turn


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn that a node may write, with everything needed to end it."""

    turn: Turn
    conversation: Conversation
    reply: Message
    fence: int
    attempts: int = 0
    """How often its node died since the last finished model call."""
    ownerless_ms: int = 0
    """How long no node had run it when it was taken over."""
    is_aborting: bool = False
    """Whether its user has asked to stop it."""


NEVER_MS = 100 * 366 * 24 * 60 * 60_000
"""For turns that wait as long as it takes."""

Paused = Literal["paused", "answered", "aborting"]
"""The outcome of pausing a turn."""


# The turn must still be ours. An existing chunk was written by the node that took the turn over, unless it is
# identical: then the first try was stored, but its reply was lost.
_UNLESS_WRITTEN = """ON CONFLICT (turn_id, first_seq) DO UPDATE SET last_seq = excluded.last_seq
    WHERE tk_turn_chunks.last_seq = excluded.last_seq AND tk_turn_chunks.events = excluded.events"""
_APPEND = Statement(
    f"""INSERT INTO tk_turn_chunks (turn_id, first_seq, last_seq, events)
    SELECT id, :first_seq, :last_seq, :events FROM tk_turns
    WHERE id = :turn_id AND fence = :fence AND status = 'RUNNING'
    {_UNLESS_WRITTEN}"""
)
_APPEND_ALL_ON_POSTGRES = f"""INSERT INTO tk_turn_chunks (turn_id, first_seq, last_seq, events)
    SELECT turn.id, chunk.first_seq, chunk.last_seq, chunk.events
    FROM (SELECT CAST(value ->> 0 AS uuid) AS turn_id, CAST(value ->> 1 AS bigint) AS fence,
            CAST(value ->> 2 AS bigint) AS first_seq, CAST(value ->> 3 AS bigint) AS last_seq,
            value ->> 4 AS events
        FROM json_array_elements(CAST(:chunks AS json))) AS chunk
    JOIN tk_turns AS turn ON turn.id = chunk.turn_id AND turn.fence = chunk.fence
    WHERE turn.status = 'RUNNING'
    {_UNLESS_WRITTEN}"""
# The chunks of all turns in one step. Each step of SQLite releases the GIL, and the writer thread waits until
# the event loop gives it back.
_APPEND_ALL = Statement(
    f"""INSERT INTO tk_turn_chunks (turn_id, first_seq, last_seq, events)
    SELECT turn.id, chunk.first_seq, chunk.last_seq, chunk.events
    FROM (SELECT json_extract(value, '$[0]') AS turn_id, json_extract(value, '$[1]') AS fence,
            json_extract(value, '$[2]') AS first_seq, json_extract(value, '$[3]') AS last_seq,
            json_extract(value, '$[4]') AS events
        FROM json_each(:chunks)) AS chunk
    JOIN tk_turns AS turn ON turn.id = chunk.turn_id AND turn.fence = chunk.fence
    WHERE turn.status = 'RUNNING'
    {_UNLESS_WRITTEN}""",
    postgres=_APPEND_ALL_ON_POSTGRES,
)
# The same, and what their model calls cost. PostgreSQL does it in one statement and one round trip.
_APPEND_AND_CHARGE = Statement(
    f"""WITH appended AS ({_APPEND_ALL_ON_POSTGRES} RETURNING turn_id),
    {charging(accepted="turn_id FROM appended")}
    SELECT turn_id FROM appended""",
)
# Whole chunks: the first may begin before `:after_seq`. SQLite reads row after row until there are
# `most_bytes`; PostgreSQL, which sends all rows at once, adds their sizes up first.
_SOME = """tk_turn_chunks WHERE turn_id = :turn_id AND last_seq > :after_seq
        AND first_seq >= (SELECT COALESCE(MAX(first_seq), 0) FROM tk_turn_chunks
            WHERE turn_id = :turn_id AND first_seq <= :after_seq)"""
READ = Statement(
    f"SELECT turn_id, first_seq, last_seq, events FROM {_SOME} ORDER BY first_seq LIMIT :limit",
    postgres=f"""SELECT turn_id, first_seq, last_seq, events FROM (
        SELECT turn_id, first_seq, last_seq, events, SUM(octet_length(events)) OVER (
            ORDER BY first_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
        FROM {_SOME} ORDER BY first_seq LIMIT :limit) AS chunks
    WHERE bytes_before IS NULL OR bytes_before < :most_bytes ORDER BY first_seq""",
)
MOST_PAGE_BYTES = 1024 * 1024
"""A page of a log ends with the chunk that reaches this size."""
MOST_CHUNKS = 1_000
_LAST_SEQ = Statement(
    """SELECT last_seq FROM tk_turn_chunks WHERE turn_id = :turn_id ORDER BY first_seq DESC LIMIT 1"""
)
# A node says that it still runs its turns, and learns which of them to abort.
_RENEW_ALL = Statement(
    """UPDATE tk_turns SET lease_until = {now} + :length_ms
    WHERE id IN ({ids}) AND node_id = :node_id AND status = 'RUNNING' RETURNING id, abort_requested"""
)
# The same for programs' turns that have gone on to another step, for operators.
_GIVEN_STEPS = """(SELECT json_extract(value, '$[0]') AS turn_id, json_extract(value, '$[1]') AS name,
        json_extract(value, '$[2]') AS since FROM json_each(:steps)) AS given"""
_GIVEN_STEPS_ON_POSTGRES = """(SELECT CAST(value ->> 0 AS uuid) AS turn_id, value ->> 1 AS name,
        CAST(value ->> 2 AS bigint) AS since FROM json_array_elements(CAST(:steps AS json))) AS given"""
_RENEW_WITH_STEPS = """UPDATE tk_turns SET lease_until = {{now}} + :length_ms, step = given.name,
        step_since = given.since
    FROM {given} WHERE id = given.turn_id AND node_id = :node_id AND status = 'RUNNING'
    RETURNING id, abort_requested"""
_RENEW_NOTING = Statement(
    _RENEW_WITH_STEPS.format(given=_GIVEN_STEPS),
    postgres=_RENEW_WITH_STEPS.format(given=_GIVEN_STEPS_ON_POSTGRES),
)
# Only for turns that end when nobody follows them.
_NOTE_FOLLOWED = Statement("UPDATE tk_turns SET followed_at = {now} WHERE id IN ({ids})")
_UNFOLLOWED = Statement(
    "SELECT id FROM tk_turns WHERE id IN ({ids}) AND COALESCE(followed_at, 0) < {now} - :absent_ms"
)
# No node listens for a waiting turn: the next that can read it takes it over and ends it.
_REQUEST_ABORT = Statement(
    """UPDATE tk_turns SET abort_requested = TRUE,
        status = CASE status WHEN 'WAITING' THEN 'RUNNING' ELSE status END,
        lease_until = CASE status WHEN 'WAITING' THEN {now} - 1 ELSE lease_until END
    WHERE id = :turn_id"""
)
# A turn whose node was lost is taken over at once; one that was lost again, after a delay.
_DELAY = "(CASE attempts WHEN 0 THEN 0 WHEN 1 THEN 2000 ELSE 10000 END)"
_ABANDONED_CONDITION = f"""status = 'RUNNING' AND origin = 'live' AND log_version <= :version
    AND (lease_until IS NULL OR lease_until + {_DELAY} < {{now}}
        OR (:alone AND attempts = 0 AND node_id <> :node_id))"""
# A program's turn runs where its code is, or newer code, unless a node with its code is there: none is, where
# we are alone. The columns of `tk_programs` have no names in common with the turn's.
_HAS_CODE = f"""given.key = turn.code_key AND given.version >= COALESCE(turn.code_version, given.version)
    AND (given.version = COALESCE(turn.code_version, given.version) OR :alone OR NOT EXISTS (
        SELECT 1 FROM tk_programs AS program WHERE program.key = turn.code_key
            AND program.version = turn.code_version AND program.is_open
            AND program.seen_at > {{now}} - {READY_MS}))"""
# Others only end it: to stop it, or because nobody has had its program for too long.
_UNBEGUN_TOO_LONG = f"code_key IS NOT NULL AND code_version IS NULL AND lease_until < {{now}} - {AWAITED_MS}"
_LEFT_TOO_LONG = "code_key IS NOT NULL AND code_version IS NOT NULL AND lease_until < {now} - :within_ms"
_STOPPING = "code_key IS NOT NULL AND abort_requested AND lease_until < {now}"
_RUNS = "SELECT id, lease_until, {rank} AS rank FROM tk_turns AS turn WHERE {which} AND"
_FIRST = "ORDER BY lease_until, id LIMIT :limit"


def _some_abandoned(given: str) -> str:
    """Each kind from its own index, so that many of one kind don't delay another."""
    kinds = [
        f"{_RUNS.format(rank=0, which='code_key IS NULL')} {_ABANDONED_CONDITION} {_FIRST}",
        f"""SELECT turn.id, turn.lease_until, 1 AS rank FROM {given} CROSS JOIN tk_turns AS turn
            WHERE {_HAS_CODE} AND {_ABANDONED_CONDITION} {_FIRST}""",
        *(
            f"{_RUNS.format(rank=2, which=which)} {_ABANDONED_CONDITION} {_FIRST}"
            for which in (_STOPPING, _UNBEGUN_TOO_LONG, _LEFT_TOO_LONG)
        ),
    ]
    found = " UNION ALL ".join(f"SELECT * FROM ({it}) AS found_{at}" for at, it in enumerate(kinds))
    return (
        f"SELECT id FROM ({found}) AS found GROUP BY id ORDER BY MIN(rank), MIN(lease_until), id LIMIT :limit"
    )


# Finds candidates without a lock; `_LOCK` checks the same conditions again for each.
_ABANDONED = Statement(_some_abandoned(GIVEN), postgres=_some_abandoned(GIVEN_ON_POSTGRES))
# Locks first: returns what the turn was, before adopting it.
_LOCKED_ABANDONED = f"""SELECT attempts, node_id IS NULL, {{now}} - COALESCE(lease_until, {{now}}),
        abort_requested, code_key
    FROM tk_turns AS turn WHERE id = :turn_id AND {_ABANDONED_CONDITION}
        AND (code_key IS NULL OR ({_STOPPING}) OR ({_UNBEGUN_TOO_LONG}) OR ({_LEFT_TOO_LONG})
            OR EXISTS (SELECT 1 FROM %s WHERE {_HAS_CODE}))"""
_LOCK = Statement(
    _LOCKED_ABANDONED % GIVEN, postgres=_LOCKED_ABANDONED % GIVEN_ON_POSTGRES, locks="FOR UPDATE OF turn"
)
# A program's turn that no node runs: any can end it.
_LOCK_OWNERLESS = Statement(
    """SELECT 1 FROM tk_turns WHERE id = :turn_id AND status = 'RUNNING' AND origin = 'live'
        AND code_key IS NOT NULL AND lease_until < {now} AND log_version <= :version""",
    locks="FOR UPDATE",
)
# SQLite allows no alias in a RETURNING clause, so these are TURN_COLUMNS without it.
_ADOPT = Statement(
    """UPDATE tk_turns AS turn SET status = 'RUNNING', node_id = :node_id, fence = fence + 1,
        attempts = :attempts, lease_until = {now} + :length_ms,
        log_version = CASE WHEN code_key IS NULL AND log_version <= CAST(:plain_version AS bigint)
            THEN CAST(:plain_version AS bigint) ELSE CAST(:version AS bigint) END,
        step = NULL, step_since = NULL, absence_noted = FALSE,
        code_version = COALESCE(code_version, CAST(:code_version AS bigint))
    WHERE id = :turn_id
    RETURNING id, conversation_id, user_message_id, assistant_message_id, status, started_at, origin, model,
        ended_at, last_event_seq, usage, error, key_id, begun_with, code_key, code_version, fence"""
)
# Without a node the turn counts as released, so that taking it over isn't a failed attempt.
_RELEASE = Statement(
    """UPDATE tk_turns SET node_id = NULL, lease_until = {now} - 1, step = NULL, step_since = NULL
    WHERE id = :turn_id AND fence = :fence AND status = 'RUNNING'"""
)
# A waiting turn has no node, so this makes it look released; the next node that can read it takes it over.
_LEAVE = Statement(
    """UPDATE tk_turns SET status = 'RUNNING', lease_until = {now} - 1
    WHERE id = :turn_id AND status = 'WAITING'"""
)
# After progress, losing the node again causes no delay.
_RESET_ATTEMPTS = Statement("UPDATE tk_turns SET attempts = 0 WHERE id = :turn_id AND fence = :fence")
# Deciding on a request locks the turn too: either it finds the turn waiting, or the turn finds the decision.
_LOCK_HELD = Statement(
    "SELECT abort_requested FROM tk_turns WHERE id = :turn_id AND fence = :fence AND status = 'RUNNING'",
    locks="FOR UPDATE",
)
# Before a waiting turn is taken over; not one that a later version has written.
_LOCK_WAITING = Statement(
    "SELECT 1 FROM tk_turns WHERE id = :turn_id AND status = 'WAITING' AND log_version <= :version",
    locks="FOR UPDATE",
)
# Only reads the turn: its end is prepared from this and stored together with the next turn's beginning.
_WAITING = Statement(
    f"""SELECT {TURN_COLUMNS}, turn.fence FROM tk_turns AS turn
    WHERE turn.id = :turn_id AND turn.status = 'WAITING' AND turn.log_version <= :version"""
)
# Asked while the turn is locked: an answer that came before it pauses would otherwise go unnoticed.
_ANSWERED = Statement(
    "SELECT id FROM tk_approvals WHERE turn_id = :turn_id AND answered_at IS NOT NULL AND id IN ({ids})"
)
# A waiting turn has no node; the one that receives the user's decision takes it over.
_PAUSE = Statement(
    """UPDATE tk_turns SET status = 'WAITING', node_id = NULL, attempts = 0, lease_until = {now},
        step = :step, step_since = CAST(:step_since AS bigint)
    WHERE id = :turn_id"""
)
# Entries without events are appended to the chunk they belong to. They may be there already: the first try
# was stored, but its reply was lost.
_ANNEX = Statement(
    """UPDATE tk_turn_chunks SET events = CASE
        WHEN substr(events, length(events) - length(CAST(:entries AS text)) + 1) = CAST(:entries AS text)
        THEN events ELSE events || CAST(:entries AS text) END
    WHERE turn_id = :turn_id
        AND first_seq = (SELECT MAX(first_seq) FROM tk_turn_chunks WHERE turn_id = :turn_id)
        AND EXISTS (SELECT 1 FROM tk_turns
            WHERE id = :turn_id AND fence = :fence AND status = 'RUNNING')"""
)
# Another node may be at the same.
_LOCK_LOGGED = Statement(
    """SELECT id FROM tk_turns WHERE has_log AND ended_at < :ended_before
    ORDER BY ended_at LIMIT :limit""",
    locks="FOR UPDATE SKIP LOCKED",
)
# Trimmed turns lose `has_log`, so that the next search skips them.
_TRIM = Statement("DELETE FROM tk_turn_chunks WHERE turn_id IN ({ids}) RETURNING turn_id")
_TRIM_VALUES = Statement("DELETE FROM tk_step_values WHERE turn_id IN ({ids})")
_NOTE_TRIMMED = Statement("UPDATE tk_turns SET has_log = FALSE WHERE id IN ({ids})")
TRIMMED_AT_ONCE = 50


def append_query(chunk: LogChunk, fence: int) -> Query:
    """The statement that stores one chunk, for larger units of work."""
    if not chunk.has_events:
        return _ANNEX(turn_id=chunk.turn_id, fence=fence, entries=f"\n{chunk.events}")
    return _APPEND(
        turn_id=chunk.turn_id,
        fence=fence,
        first_seq=chunk.first_seq,
        last_seq=chunk.last_seq,
        events=chunk.events,
    )


class SqlTurnLog:
    """The event logs of a database."""

    def __init__(self, database: Database, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows

    async def append(
        self, chunks: Sequence[tuple[LogChunk, int]], receipts: Sequence[tuple[TurnReceipt, int]] = ()
    ) -> set[TurnId]:
        """Stores chunks, each under its turn's fence; returns the turns whose chunk was accepted.

        In the same transaction, stores receipts, each under its turn's fence, of turns whose chunk isn't
        refused.
        """
        with_events = [it for it in chunks if it[0].has_events]
        alone = [it for it in chunks if not it[0].has_events]
        accepted = await self._append_all(with_events, receipts) if with_events or receipts else set[TurnId]()
        return accepted | {it[0].turn_id for it in alone if await self._append_alone(it)}

    async def _append_all(
        self, chunks: Sequence[tuple[LogChunk, int]], receipts: Sequence[tuple[TurnReceipt, int]]
    ) -> set[TurnId]:
        try:
            written = await self._write(chunks, receipts)
        except StorageConflict:
            written = None
        if written is not None and len(written) == len(chunks):
            return {chunk.turn_id for chunk, _ in chunks}
        receipts_of: dict[TurnId, list[tuple[TurnReceipt, int]]] = {}
        for receipt, fence in receipts:
            receipts_of.setdefault(receipt.turn_id, []).append((receipt, fence))
        accepted = {
            chunk.turn_id
            for chunk, fence in chunks
            if await self._append_alone((chunk, fence), receipts_of.pop(chunk.turn_id, ()))
        }
        for own in receipts_of.values():  # of turns without a chunk
            with suppress(StorageConflict):
                await self._write((), own)
        return accepted

    async def _append_alone(
        self, chunk: tuple[LogChunk, int], receipts: Sequence[tuple[TurnReceipt, int]] = ()
    ) -> bool:
        try:
            return bool(await self._write([chunk], receipts))
        except StorageConflict:
            return False

    async def _write(
        self, chunks: Sequence[tuple[LogChunk, int]], receipts: Sequence[tuple[TurnReceipt, int]]
    ) -> Rows:
        """Stores chunks; returns a row for each of them that was accepted."""
        charges = [charge for chunk, _ in chunks for charge in chunk.charges]
        if charges and not receipts and self._database.dialect == "postgres":
            rows = [row for chunk, _ in chunks for row in ledger_rows(chunk.charges, chunk.turn_id)]
            charged = _APPEND_AND_CHARGE(chunks=_to_json(chunks), charges=to_json(rows))
            return await self._database.execute(charged, urgent=True)
        query = append_query(*chunks[0]) if len(chunks) == 1 else _APPEND_ALL(chunks=_to_json(chunks))
        if not receipts and not charges:
            return await self._database.execute(query, urgent=True)
        return await self._database.write(
            lambda: _append_with(query, len(chunks), receipts, charges), urgent=True
        )

    async def read(self, turn_id: TurnId, after_seq: int) -> Sequence[LogChunk]:
        """All chunks that hold events after `after_seq`, in order."""
        return [chunk async for page in self.pages(turn_id, after_seq) for chunk in page]

    async def pages(self, turn_id: TurnId, after_seq: int) -> AsyncGenerator[Sequence[LogChunk]]:
        """The same, a page at a time; none is empty."""
        while page := await self.page(turn_id, after_seq):
            yield page
            if not _may_be_cut(page):
                break
            after_seq = page[-1].last_seq

    async def page(self, turn_id: TurnId, after_seq: int) -> Sequence[LogChunk]:
        """The first of them that fit into a page, at least one if there are any."""
        query = READ(turn_id=turn_id, after_seq=after_seq, limit=MOST_CHUNKS, most_bytes=MOST_PAGE_BYTES)
        return [LogChunk(*row) for row in await self._database.fetch(query)]

    async def last_seq(self, turn_id: TurnId) -> int:
        """The number of the last event; 0 if there is no log."""
        rows = await self._database.fetch(_LAST_SEQ(turn_id=turn_id))
        return rows[0][0] if rows else 0

    async def renew(self, node_id: str, turn_ids: Iterable[TurnId], length_ms: int) -> dict[TurnId, bool]:
        """Renews a node's leases; returns the turns it still owns and whether to abort them."""
        rows = await self._database.execute(
            _RENEW_ALL(node_id=node_id, ids=to_json(list(turn_ids)), length_ms=length_ms), apart=True
        )
        return {TurnId(turn_id): bool(abort) for turn_id, abort in rows}

    async def renew_noting(
        self, node_id: str, steps: Mapping[TurnId, OpenStep | None], length_ms: int
    ) -> dict[TurnId, bool]:
        """The same for programs' turns that have gone on, with what each is doing now."""
        given = [(id_, it and it.name, it and it.since) for id_, it in steps.items()]
        rows = await self._database.execute(
            _RENEW_NOTING(node_id=node_id, steps=to_json(given), length_ms=length_ms), apart=True
        )
        return {TurnId(turn_id): bool(abort) for turn_id, abort in rows}

    async def note_followed(self, turn_ids: Iterable[TurnId]) -> None:
        """Somebody follows these turns now."""
        await self._database.execute(_NOTE_FOLLOWED(ids=to_json(list(turn_ids))), urgent=True)

    async def unfollowed(self, turn_ids: Iterable[TurnId], absent_ms: int) -> set[TurnId]:
        """Those of these turns that nobody was noted to follow for so long, by the database's clock."""
        query = _UNFOLLOWED(ids=to_json(list(turn_ids)), absent_ms=absent_ms)
        return {TurnId(turn_id) for (turn_id,) in await self._database.fetch(query)}

    async def request_abort(self, turn_id: TurnId) -> None:
        """Asks the node that runs the turn to abort it; takes over a turn that waits for its user."""
        await self._database.execute(_REQUEST_ABORT(turn_id=turn_id))

    async def abandoned(
        self,
        node_id: str,
        *,
        alone: bool,
        limit: int,
        codes: Sequence[Code] = (),
        within_ms: int = NEVER_MS,
    ) -> Sequence[TurnId]:
        """Running turns whose lease has expired; if we are known to be alone, also all turns of other nodes.

        A turn whose nodes died repeatedly waits longer. Turns written by a later version are left to it. Of
        the turns of programs those that `codes` can run, and those that only have to be ended: they are to
        stop, or nobody has had their program for `within_ms`, or for minutes if they never ran.
        """
        rows = await self._database.fetch(
            _ABANDONED(
                node_id=node_id,
                alone=alone,
                limit=limit,
                version=LOG_VERSION,
                codes=codes_json(codes),
                within_ms=within_ms,
            )
        )
        return [TurnId(turn_id) for (turn_id,) in rows]

    async def adopt(
        self,
        turn_id: TurnId,
        lease: Lease,
        *,
        alone: bool,
        codes: Sequence[Code] = (),
        within_ms: int = NEVER_MS,
    ) -> HeldTurn | None:
        """Takes over an abandoned turn; None if it has ended or another node was first.

        It counts as an attempt unless its node had released it. A program's turn that never ran belongs to
        our version of the code from now on.
        """
        return await self._database.write(lambda: self._adopt(turn_id, lease, alone, codes, within_ms))

    def _adopt(
        self, turn_id: TurnId, lease: Lease, alone: bool, codes: Sequence[Code], within_ms: int
    ) -> Plan[HeldTurn | None]:
        rows = yield _LOCK(
            turn_id=turn_id,
            node_id=lease.node_id,
            alone=alone,
            version=LOG_VERSION,
            codes=codes_json(codes),
            within_ms=within_ms,
        )
        if not rows:
            return None
        attempts, was_released, ownerless_ms, is_aborting, key = rows[0]
        version = max((it.version for it in codes if it.key == key), default=None)
        attempts = attempts if was_released else attempts + 1
        held = yield from self.take_over(turn_id, lease, attempts, code_version=version)
        return replace(held, ownerless_ms=max(ownerless_ms, 0), is_aborting=bool(is_aborting))

    def take_over(
        self, turn_id: TurnId, lease: Lease, attempts: int, *, code_version: int | None = None
    ) -> Plan[HeldTurn]:
        """Makes an active turn a node's own; the caller has locked its row."""
        (row,) = yield _ADOPT(
            turn_id=turn_id,
            node_id=lease.node_id,
            attempts=attempts,
            version=LOG_VERSION,
            plain_version=PLAIN_LOG_VERSION,
            code_version=code_version,
            length_ms=lease.length_ms,
        )
        return (yield from self._held(turn_id, row, attempts))

    def _held(self, turn_id: TurnId, row: Row, attempts: int) -> Plan[HeldTurn]:
        (conversation,) = yield CONVERSATION_OF_TURN(turn_id=turn_id)
        (reply,) = yield REPLY_OF_TURN(turn_id=turn_id)
        return HeldTurn(
            to_turn(row[:-1]), self._rows.read(conversation), to_message(reply, ()), row[-1], attempts
        )

    async def release(self, turn_id: TurnId, fence: int) -> None:
        """Lets another node resume a turn immediately; this node no longer writes it."""
        await self._database.execute(_RELEASE(turn_id=turn_id, fence=fence), urgent=True)

    def leave(self, turn_id: TurnId) -> Plan[None]:
        """Lets another node continue a waiting turn, like a released one; the caller has locked its row."""
        yield _LEAVE(turn_id=turn_id)

    async def reset_attempts(self, turn_id: TurnId, fence: int) -> None:
        """Resets the count of losses of a turn that has made progress."""
        await self._database.execute(_RESET_ATTEMPTS(turn_id=turn_id, fence=fence), urgent=True)

    async def pause(
        self, turn_id: TurnId, fence: int, requests: Collection[str], step: OpenStep | None = None
    ) -> Paused:
        """Makes a turn wait for its user, owned by no node, in a step if a program runs it. Changes nothing
        if one of its open requests has been decided or the turn is to stop.
        """
        return await self._database.write(lambda: _pause(turn_id, fence, requests, step))

    async def waiting(self, turn_id: TurnId) -> HeldTurn | None:
        """A turn that waits for its user, with everything needed to end it; no node owns it."""
        return await self._database.read(lambda: self._waiting(turn_id))

    def _waiting(self, turn_id: TurnId) -> Plan[HeldTurn | None]:
        rows = yield _WAITING(turn_id=turn_id, version=LOG_VERSION)
        return (yield from self._held(turn_id, rows[0], 0)) if rows else None

    async def adopt_waiting(self, turn_id: TurnId, lease: Lease) -> HeldTurn | None:
        """Makes a turn that waits for its user this node's own; None if it isn't waiting."""
        return await self._database.write(lambda: self._adopt_waiting(turn_id, lease))

    def _adopt_waiting(self, turn_id: TurnId, lease: Lease) -> Plan[HeldTurn | None]:
        if not (yield _LOCK_WAITING(turn_id=turn_id, version=LOG_VERSION)):
            return None
        return (yield from self.take_over(turn_id, lease, 0))

    async def adopt_ownerless(self, turn_id: TurnId, lease: Lease) -> HeldTurn | None:
        """Makes a program's turn that no node runs this node's own, to end it; None if there is none."""
        return await self._database.write(lambda: self._adopt_ownerless(turn_id, lease))

    def _adopt_ownerless(self, turn_id: TurnId, lease: Lease) -> Plan[HeldTurn | None]:
        if not (yield _LOCK_OWNERLESS(turn_id=turn_id, version=LOG_VERSION)):
            return None
        return (yield from self.take_over(turn_id, lease, 0))

    async def trim(self, ended_before: int) -> int:
        """Deletes the logs of turns that ended before a time; returns how many chunks."""
        removed = 0
        while trimmed := await self._database.write(lambda: _trim(ended_before)):
            removed += sum(trimmed)
        return removed


def _may_be_cut(page: Sequence[LogChunk]) -> bool:
    """Whether a page can have reached its size: a character has at most four bytes."""
    texts = 4 * sum(len(chunk.events) for chunk in page)
    return len(page) == MOST_CHUNKS or texts + len(page) * ROW_BYTES >= MOST_PAGE_BYTES


def _trim(ended_before: int) -> Plan[list[int]]:
    """Removes the logs of some turns; returns how many chunks each of them had."""
    rows = yield _LOCK_LOGGED(ended_before=ended_before, limit=TRIMMED_AT_ONCE)
    ids = [turn_id for (turn_id,) in rows]
    if not ids:
        return []
    chunks = Counter(turn_id for (turn_id,) in (yield _TRIM(ids=to_json(ids))))
    yield _TRIM_VALUES(ids=to_json(ids))
    yield _NOTE_TRIMMED(ids=to_json(ids))
    return [chunks[turn_id] for turn_id in ids]


def _append_with(
    query: Query, count: int, receipts: Sequence[tuple[TurnReceipt, int]], charges: Sequence[Charge]
) -> Plan[Rows]:
    """Stores receipts, so many chunks and their charges, if this node may write all of their turns."""
    # First: they lock the conversation and then the turn, as deleting a conversation does.
    if receipts:
        yield from add_receipts(receipts)
    written = (yield query) if count else ()
    if len(written) < count:
        raise StorageConflict("A turn has already ended, or another node runs it.")
    if charges:
        yield from add_charges(charges)
    return written


def _pause(turn_id: TurnId, fence: int, requests: Collection[str], step: OpenStep | None) -> Plan[Paused]:
    held = yield _LOCK_HELD(turn_id=turn_id, fence=fence)
    if not held:
        raise StorageConflict("The turn has already ended, or another node runs it.")
    if held[0][0]:
        return "aborting"
    if (yield _ANSWERED(turn_id=turn_id, ids=to_json(sorted(requests)))):
        return "answered"
    yield _PAUSE(turn_id=turn_id, step=step and step.name, step_since=step and step.since)
    return "paused"


def _to_json(chunks: Sequence[tuple[LogChunk, int]]) -> str:
    return to_json(
        [(chunk.turn_id, fence, chunk.first_seq, chunk.last_seq, chunk.events) for chunk, fence in chunks]
    )
