"""Jobs in the database."""

from collections.abc import Collection, Sequence

from threadkeep.ports.jobs import Job
from threadkeep.storage.columns import to_json, to_object
from threadkeep.storage.database import Database, Plan, Statement, with_clock

_ADD = with_clock(
    """INSERT INTO tk_jobs (id, kind, arguments, attempts, run_at, created_at)
    VALUES (:id, :kind, :arguments, 0, {now} + :delay_ms, {now})"""
)
_HASTEN = with_clock(
    """UPDATE tk_jobs SET run_at = CASE WHEN run_at < {now} + :delay_ms THEN run_at ELSE {now} + :delay_ms END
    WHERE kind = :kind AND arguments = :arguments AND holder IS NULL RETURNING id"""
)
_DUE = """SELECT id FROM tk_jobs
    WHERE kind = :kind AND run_at <= {now} AND (lease_until IS NULL OR lease_until < {now}) FOR_WHOM
    ORDER BY run_at LIMIT :limit"""
_FOR_OTHERS = """AND COALESCE(json_extract(arguments, '$.user_id'), '') NOT IN (
        SELECT value FROM json_each(:not_for))"""
_FOR_OTHERS_POSTGRES = """AND COALESCE(CAST(arguments AS json) ->> 'user_id', '') NOT IN (
        SELECT json_array_elements_text(CAST(:not_for AS json)))"""
_TAKE = """UPDATE tk_jobs SET lease_until = {now} + :lease_ms, holder = :holder, attempts = attempts + 1
    WHERE id IN (DUE) RETURNING id, kind, arguments, attempts"""


def _take(for_whom: str, for_whom_postgres: str) -> Statement:
    due, due_postgres = (_DUE.replace("FOR_WHOM", it) for it in (for_whom, for_whom_postgres))
    return with_clock(
        _TAKE.replace("DUE", due), postgres=_TAKE.replace("DUE", f"{due_postgres} FOR UPDATE SKIP LOCKED")
    )


_TAKE_DUE = {False: _take("", ""), True: _take(_FOR_OTHERS, _FOR_OTHERS_POSTGRES)}
_RELEASE = Statement(
    """UPDATE tk_jobs SET lease_until = NULL, holder = NULL, attempts = attempts - 1
    WHERE holder = :holder"""
)
_RELEASE_ALL = Statement("UPDATE tk_jobs SET lease_until = NULL, holder = NULL WHERE holder IS NOT NULL")
_FINISH = Statement("DELETE FROM tk_jobs WHERE id = :id")
_POSTPONE = with_clock(
    """UPDATE tk_jobs SET lease_until = NULL, holder = NULL, run_at = {now} + :delay_ms, error = :error
    WHERE id = :id"""
)


def _add(job: Job, delay_ms: int) -> Plan[None]:
    values = {"kind": job.kind, "arguments": to_json(job.arguments), "delay_ms": delay_ms}
    if not (yield _HASTEN(**values)):
        yield _ADD(id=job.id, **values)


class SqlJobs:
    """The jobs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, job: Job, *, delay_ms: int = 0) -> None:
        """Stores a job that is due after a delay."""
        await self._database.write(lambda: _add(job, delay_ms))

    async def take(
        self, holder: str, kind: str, *, lease_ms: int, limit: int, not_for: Collection[str] = ()
    ) -> Sequence[Job]:
        """Takes due jobs of a kind."""
        values = {"holder": holder, "kind": kind, "lease_ms": lease_ms, "limit": limit}
        take = _TAKE_DUE[bool(not_for)]
        rows = await self._database.execute(take(**values, not_for=to_json(list(not_for))))
        return [Job(id_, kind, to_object(arguments), attempts) for id_, kind, arguments, attempts in rows]

    async def release(self, holder: str) -> None:
        """Gives back jobs that a holder took and will not do."""
        await self._database.execute(_RELEASE(holder=holder))

    async def release_all(self) -> None:
        """Gives back jobs that dead processes took; their attempts count."""
        await self._database.execute(_RELEASE_ALL())

    async def finish(self, job: Job) -> None:
        """Deletes a finished job."""
        await self._database.execute(_FINISH(id=job.id))

    async def postpone(self, job: Job, *, delay_ms: int, error: str) -> None:
        """Puts back a job that failed."""
        await self._database.execute(_POSTPONE(id=job.id, delay_ms=delay_ms, error=error))
