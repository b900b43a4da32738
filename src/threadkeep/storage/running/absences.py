"""Turns whose program nobody runs: their users are told once, by whichever node comes first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId
from threadkeep.domain.turn import TurnCode
from threadkeep.storage.code.programs import READY_MS
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.turns import ADD_CHUNK, LOG_VERSION

NOTED_AFTER_MS = 3_000
"""How long a turn has waited for its program when its user is told."""

_WAITS = f"""status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND NOT absence_noted
    AND lease_until < {{now}} - :after_ms AND NOT abort_requested AND log_version <= :version
    AND NOT EXISTS (SELECT 1 FROM tk_programs AS program WHERE program.key = turn.code_key
        AND program.version >= COALESCE(turn.code_version, program.version) AND program.is_open
        AND program.seen_at > {{now}} - {READY_MS})"""
_UNNOTED = Statement(
    f"""SELECT id, code_key, code_version FROM tk_turns AS turn WHERE {_WAITS}
    ORDER BY lease_until LIMIT :limit"""
)
_LOCK = Statement(
    f"""SELECT code_key, (SELECT MAX(last_seq) FROM tk_turn_chunks WHERE turn_id = turn.id)
    FROM tk_turns AS turn WHERE id = :turn_id AND {_WAITS}""",
    locks="FOR UPDATE OF turn",
)
# The fence rises, so that a late node no longer writes. Who runs the turn, and since when nobody does, stays.
_NOTE = Statement("UPDATE tk_turns SET absence_noted = TRUE, fence = fence + 1 WHERE id = :turn_id")
_WAITING = Statement(
    """SELECT code_key, COUNT(*) FROM tk_turns WHERE status = 'RUNNING' AND origin = 'live'
        AND code_key IS NOT NULL AND lease_until < {now} AND (node_id IS NULL OR absence_noted)
    GROUP BY code_key"""
)


@dataclass(frozen=True, slots=True)
class Absence:
    """A turn that waits for its program, locked."""

    turn_id: TurnId
    key: str
    """Of the program."""
    last_seq: int
    """The number of its last event."""


class SqlAbsences:
    """The turns of a database that wait for their programs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unnoted(
        self, *, limit: int, after_ms: int = NOTED_AFTER_MS
    ) -> Sequence[tuple[TurnId, TurnCode]]:
        """Turns that have waited for a while, and whose users don't know; the longest first."""
        query = _UNNOTED(limit=limit, after_ms=after_ms, version=LOG_VERSION)
        rows = await self._database.fetch(query)
        return [(TurnId(turn_id), TurnCode(key, version)) for turn_id, key, version in rows]

    async def note(
        self,
        turn_id: TurnId,
        notice: Callable[[Absence], LogChunk],
        *,
        after_ms: int = NOTED_AFTER_MS,
    ) -> LogChunk | None:
        """Adds a notice to a turn's log; None if it no longer waits, or another node was first."""
        return await self._database.write(lambda: _note(turn_id, notice, after_ms))

    async def waiting(self) -> Mapping[str, int]:
        """How many turns wait for each program."""
        return dict(await self._database.fetch(_WAITING()))


def _note(turn_id: TurnId, notice: Callable[[Absence], LogChunk], after_ms: int) -> Plan[LogChunk | None]:
    rows = yield _LOCK(turn_id=turn_id, after_ms=after_ms, version=LOG_VERSION)
    if not rows:
        return None
    chunk = notice(Absence(turn_id, *rows[0]))
    yield _NOTE(turn_id=turn_id)
    yield ADD_CHUNK(
        turn_id=turn_id,
        first_seq=chunk.first_seq,
        last_event_seq=chunk.last_seq,
        events=chunk.events,
    )
    return chunk
