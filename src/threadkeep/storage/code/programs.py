"""Which programs the nodes can run: each node renews its rows as long as it lives."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from threadkeep.domain.agent import Code, SeenWorker, Served, WorkerState
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Statement

READY_MS = 10_000
"""A program that was seen so recently runs."""
AWAITED_MS = 5 * 60_000
"""A message waits for a program that was seen so recently."""
_FORGOTTEN_MS = 24 * 60 * 60_000

GIVEN = """(SELECT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS version
    FROM json_each(:codes)) AS given"""
GIVEN_ON_POSTGRES = """(SELECT value ->> 0 AS key, CAST(value ->> 1 AS bigint) AS version
    FROM json_array_elements(CAST(:codes AS json))) AS given"""
# With how many turns of each run.
_COUNTED = """(SELECT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS version,
        json_extract(value, '$[2]') AS running
    FROM json_each(:codes)) AS given"""
_COUNTED_ON_POSTGRES = """(SELECT value ->> 0 AS key, CAST(value ->> 1 AS bigint) AS version,
        CAST(value ->> 2 AS bigint) AS running
    FROM json_array_elements(CAST(:codes AS json))) AS given"""
_SEEN = """INSERT INTO tk_programs (key, version, node, worker, seen_at, is_open, name, sdk, capacity,
        running, blocked_ms, connected_at)
    SELECT key, version, :node, '', {{now}}, CAST(:is_open AS boolean), :name, :sdk,
        CAST(:capacity AS bigint), running, CAST(:blocked_ms AS bigint), {{now}}
    FROM {given} WHERE TRUE
    ON CONFLICT (key, version, node, worker) DO UPDATE SET seen_at = excluded.seen_at,
        is_open = excluded.is_open, running = excluded.running, blocked_ms = excluded.blocked_ms"""
_NOTE_SEEN = Statement(_SEEN.format(given=_COUNTED), postgres=_SEEN.format(given=_COUNTED_ON_POSTGRES))
# Kept for a while: its successor may be on its way.
_CLOSE = Statement("UPDATE tk_programs SET is_open = FALSE, seen_at = {now} WHERE node = :node AND is_open")
_FORGET = Statement(f"DELETE FROM tk_programs WHERE seen_at < {{now}} - {_FORGOTTEN_MS}")
_SERVED = Statement(
    f"""SELECT key, SUM(CASE WHEN is_open AND seen_at > {{now}} - {READY_MS} THEN 1 ELSE 0 END),
        MAX(seen_at) > {{now}} - {AWAITED_MS}
    FROM tk_programs WHERE key IN (SELECT value FROM json_each(:keys)) GROUP BY key""",
    postgres=f"""SELECT key,
        SUM(CASE WHEN is_open AND seen_at > {{now}} - {READY_MS} THEN 1 ELSE 0 END),
        MAX(seen_at) > {{now}} - {AWAITED_MS}
    FROM tk_programs WHERE key IN (SELECT json_array_elements_text(CAST(:keys AS json))) GROUP BY key""",
)
_ALL = Statement(
    f"""SELECT key, version, node, worker, seen_at, is_open AND seen_at > {{now}} - {READY_MS}
    FROM tk_programs ORDER BY key, version, node, worker"""
)
# Those that are there, and those that were a moment ago.
_WORKERS = Statement(
    f"""SELECT node, worker, name, sdk, capacity, connected_at, seen_at, blocked_ms, is_open, key, version,
        running
    FROM tk_programs WHERE seen_at > {{now}} - {READY_MS} ORDER BY node, worker, key, version LIMIT :limit"""
)
_MOST_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class SeenProgram:
    """A program on a node, for operators."""

    key: str
    version: int
    node: str
    worker: str
    seen_at: int
    is_ready: bool


class SqlPrograms:
    """The programs of all nodes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note_seen(self, node: str, codes: Sequence[Code], state: WorkerState | None = None) -> None:
        """This node has these programs, and how it is."""
        state = state or WorkerState()
        query = _NOTE_SEEN(
            node=node,
            codes=to_json([(it.key, it.version, state.running.get(it.key, 0)) for it in codes]),
            is_open=state.is_open,
            name=state.name,
            sdk=state.sdk,
            capacity=state.capacity,
            blocked_ms=state.blocked_ms,
        )
        await self._database.execute(query, apart=True)

    async def close(self, node: str) -> None:
        """This node no longer runs any; forgets what was seen long ago."""
        await self._database.write(lambda: _close(node))

    async def served(self, keys: Collection[str]) -> Mapping[str, Served]:
        """How some programs stand; those that nobody has run lately are left out."""
        if not keys:
            return {}
        rows = await self._database.fetch(_SERVED(keys=to_json(sorted(keys))))
        return {key: Served(workers, bool(is_awaited)) for key, workers, is_awaited in rows}

    async def workers(self) -> Sequence[SeenWorker]:
        """The processes that run programs now, the oldest first."""
        rows = await self._database.fetch(_WORKERS(limit=_MOST_LISTED))
        found = [_worker(list(of)) for _, of in groupby(rows, key=lambda row: (row[0], row[1]))]
        return sorted(found, key=lambda it: it.connected_at)

    async def all(self) -> Sequence[SeenProgram]:
        """All programs that were seen lately."""
        rows = await self._database.fetch(_ALL())
        return [SeenProgram(*row[:-1], is_ready=bool(row[-1])) for row in rows]


def codes_json(codes: Sequence[Code]) -> str:
    """Codes as a statement's parameter."""
    return to_json([(it.key, it.version) for it in codes])


def _worker(rows: Sequence[Row]) -> SeenWorker:
    """One worker, of a row for each of its programs."""
    *known, is_open, _, _, _ = rows[0]
    codes = [Code(row[-3], row[-2]) for row in rows]
    return SeenWorker(*known, is_open=bool(is_open), codes=codes, running=sum(row[-1] for row in rows))


def _close(node: str) -> Plan[None]:
    yield _CLOSE(node=node)
    yield _FORGET()
