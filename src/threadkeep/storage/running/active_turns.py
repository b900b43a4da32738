"""Turns that have begun and not ended, of all users: where they run, what they do, what they wait for."""

from collections.abc import Sequence

from threadkeep.domain.ids import FIRST_UUID, TurnId
from threadkeep.domain.turn import ALL_ACTIVE, ActiveFilter, OpenStep, RunningTurn, TurnCode
from threadkeep.storage.database.connector import Database, Row, Statement

# A program's turn without a node waits for one that has the program; so does that of a node that was lost,
# once its user was told.
_WAITS_FOR = """CASE WHEN status = 'WAITING' THEN 'person'
        WHEN code_key IS NOT NULL AND (node_id IS NULL OR absence_noted) THEN 'worker' ELSE 'nothing' END"""
_SEEN = f"""id, conversation_id, node_id, model, started_at, code_key, code_version, abort_requested,
        lease_until, step, step_since, {_WAITS_FOR} AS waits_for"""
# With its conversation's user and agent, and whether its node is late.
_COLUMNS = """turn.id, turn.conversation_id, conversation.user_id, conversation.agent_id, turn.node_id,
    turn.model, turn.started_at, turn.code_key, turn.code_version, turn.abort_requested,
    turn.waits_for <> 'person' AND turn.lease_until < {now}, turn.step, turn.step_since, turn.waits_for"""
_OF_CONVERSATION = """JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id"""
_WANTED = """(CAST(:code_key AS text) IS NULL OR code_key = :code_key)
        AND (CAST(:step AS text) IS NULL OR step = :step)
        AND (CAST(:older_than_ms AS bigint) IS NULL OR started_at <= {now} - :older_than_ms)"""
# Few turns run, and they have an index of their own; it is read whole, then sorted. Many may wait for their
# users: those have one by age.
_PAGE = Statement(
    f"""WITH active AS MATERIALIZED (
        SELECT {_SEEN} FROM tk_turns
        WHERE status = 'RUNNING' AND origin = 'live' AND lease_until > 0 AND {_WANTED}
            AND (CAST(:waits_for AS text) IS NULL OR {_WAITS_FOR} = :waits_for)
        UNION ALL
        SELECT * FROM (SELECT {_SEEN} FROM tk_turns
            WHERE status = 'WAITING' AND origin = 'live' AND id > :after AND {_WANTED}
                AND (CAST(:waits_for AS text) IS NULL OR :waits_for = 'person')
            ORDER BY id LIMIT CAST(:limit AS bigint) + CAST(:offset AS bigint)) AS waiting)
    SELECT {_COLUMNS} FROM active AS turn {_OF_CONVERSATION}
    WHERE turn.id > :after ORDER BY turn.id LIMIT :limit OFFSET :offset"""
)
_GET = Statement(
    f"""WITH active AS MATERIALIZED (SELECT {_SEEN} FROM tk_turns
        WHERE id = :id AND status IN ('RUNNING', 'WAITING') AND origin = 'live')
    SELECT {_COLUMNS} FROM active AS turn {_OF_CONVERSATION}"""
)


class SqlActiveTurns:
    """The active turns of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, *, after: str | None, offset: int, limit: int, only: ActiveFilter = ALL_ACTIVE
    ) -> Sequence[RunningTurn]:
        """The turns on all nodes, oldest first; those after an id."""
        query = _PAGE(
            after=after or FIRST_UUID,
            offset=offset,
            limit=limit,
            code_key=only.code_key,
            step=only.step,
            older_than_ms=only.older_than_ms,
            waits_for=only.waits_for,
        )
        return [_running(row) for row in await self._database.fetch(query)]

    async def get(self, turn_id: TurnId) -> RunningTurn | None:
        """Any user's turn, if it runs or waits."""
        rows = await self._database.fetch(_GET(id=turn_id))
        return _running(rows[0]) if rows else None


def _running(row: Row) -> RunningTurn:
    *known, code_key, code_version, is_aborting, is_stalled, step, step_since, waits_for = row
    return RunningTurn(
        *known,
        is_aborting=bool(is_aborting),
        is_stalled=bool(is_stalled),
        code=TurnCode(code_key, code_version) if code_key is not None else None,
        step=OpenStep(step, step_since) if step is not None else None,
        waits_for=None if waits_for == "nothing" else waits_for,
    )
