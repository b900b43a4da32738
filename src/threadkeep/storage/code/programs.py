"""Which programs the nodes can run: each node renews its rows as long as it lives."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from threadkeep.domain.agent import Code, Served
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement

READY_MS = 10_000
"""A program that was seen so recently runs."""
AWAITED_MS = 5 * 60_000
"""A message waits for a program that was seen so recently."""
_FORGOTTEN_MS = 24 * 60 * 60_000

GIVEN = """(SELECT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS version
    FROM json_each(:codes)) AS given"""
GIVEN_ON_POSTGRES = """(SELECT value ->> 0 AS key, CAST(value ->> 1 AS bigint) AS version
    FROM json_array_elements(CAST(:codes AS json))) AS given"""
_SEEN = """INSERT INTO tk_programs (key, version, node, worker, seen_at, is_open)
    SELECT key, version, :node, '', {{now}}, TRUE FROM {given} WHERE TRUE
    ON CONFLICT (key, version, node, worker) DO UPDATE SET seen_at = excluded.seen_at, is_open = TRUE"""
_NOTE_SEEN = Statement(_SEEN.format(given=GIVEN), postgres=_SEEN.format(given=GIVEN_ON_POSTGRES))
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

    async def note_seen(self, node: str, codes: Sequence[Code]) -> None:
        """This node can run these programs."""
        await self._database.execute(_NOTE_SEEN(node=node, codes=codes_json(codes)), apart=True)

    async def close(self, node: str) -> None:
        """This node no longer runs any; forgets what was seen long ago."""
        await self._database.write(lambda: _close(node))

    async def served(self, keys: Collection[str]) -> Mapping[str, Served]:
        """How some programs stand; those that nobody has run lately are left out."""
        if not keys:
            return {}
        rows = await self._database.fetch(_SERVED(keys=to_json(sorted(keys))))
        return {key: Served(workers, bool(is_awaited)) for key, workers, is_awaited in rows}

    async def all(self) -> Sequence[SeenProgram]:
        """All programs that were seen lately."""
        rows = await self._database.fetch(_ALL())
        return [SeenProgram(*row[:-1], is_ready=bool(row[-1])) for row in rows]


def codes_json(codes: Sequence[Code]) -> str:
    """Codes as a statement's parameter."""
    return to_json([(it.key, it.version) for it in codes])


def _close(node: str) -> Plan[None]:
    yield _CLOSE(node=node)
    yield _FORGET()
