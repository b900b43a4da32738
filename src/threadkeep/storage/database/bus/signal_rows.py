"""Signals as rows, for nodes that can't listen; they also go out as a notification, for those that can.

Rows are numbered in the order in which they become visible: whoever writes one holds a lock until the commit.
So a node that has read up to a number has missed nothing before it, however long a commit took.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.domain.ids import new_uuid
from threadkeep.storage.database.connector import Database, Statement

ORDER_LOCK = 0x7369_676E_616C  # "signal"
KEPT_MS = 60_000
"""How long a node can be away without missing a signal."""
MOST_AT_ONCE = 200
"""Payloads have up to 8 KB."""

# SQLite has no other processes to notify.
NOTIFY = Statement("SELECT 1", postgres="SELECT pg_notify(:channel, :payload)")
# The server's start changes when a replica takes over, which may lack rows or number others the same.
_STARTED = "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint)"
_ADD = Statement(
    "SELECT 1",
    postgres=f"""WITH alone AS MATERIALIZED (SELECT pg_advisory_xact_lock({ORDER_LOCK})),
    added AS (
        INSERT INTO tk_signals (node, payload, written_at) SELECT :node, :payload, {{now}} FROM alone
        RETURNING number)
    SELECT number, {_STARTED}, pg_notify(:channel, :payload) FROM added""",
)
# The first row is the last that the node has seen: without it, the node may have missed some.
_FROM = Statement(
    "SELECT 1",
    postgres=f"""SELECT number, node, payload, {_STARTED} FROM tk_signals
    WHERE number >= :number ORDER BY number LIMIT :limit""",
)
# Never the newest one: nodes that have read everything continue from it.
_TRIM = Statement(
    "SELECT 1",
    postgres="""DELETE FROM tk_signals
    WHERE written_at < {now} - :kept_ms AND number < (SELECT max(number) FROM tk_signals)""",
)


@dataclass(frozen=True, slots=True)
class Position:
    """The last row that a node has seen, and when the server that it was on started."""

    number: int
    server_started_at: int


class SignalRows:
    """The rows as one node writes and reads them."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._node = new_uuid()

    async def notify(self, payload: str) -> None:
        """Notifies only the nodes that listen."""
        await self._database.execute(NOTIFY(channel=self._channel, payload=payload))

    async def add(self, payload: str) -> Position:
        """Adds a row and notifies the nodes that listen."""
        ((number, started_at, _),) = await self._database.execute(
            _ADD(node=self._node, payload=payload, channel=self._channel)
        )
        return Position(number, started_at)

    async def read(self, seen: Position) -> tuple[Sequence[str], Position] | None:
        """What other nodes have added since, and the new position; None if some may be gone."""
        rows = await self._database.fetch(_FROM(number=seen.number, limit=MOST_AT_ONCE))
        if not rows or (rows[0][0], rows[0][3]) != (seen.number, seen.server_started_at):
            return None
        payloads = [payload for _, node, payload, _ in rows[1:] if node != self._node]
        return payloads, Position(rows[-1][0], seen.server_started_at)

    async def trim(self) -> None:
        """Removes what every node that works has seen long ago."""
        await self._database.execute(_TRIM(kept_ms=KEPT_MS))
