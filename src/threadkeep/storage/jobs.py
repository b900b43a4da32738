"""Jobs in the database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.storage.database.columns import to_json, to_object
from threadkeep.storage.database.connector import Database, Plan, Statement


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `kind` selects its handler."""

    id: str
    kind: str
    arguments: Mapping[str, Any]
    attempts: int = 0
    holder: str | None = None
    """Who claimed it. Together with `attempts`, which every claim raises, it names the claim."""

    @property
    def user_id(self) -> str:
        """The user it is for, so that one user's jobs don't delay another's; empty for none."""
        return str(self.arguments.get("user_id", ""))


# If the same job already waits, `_HASTEN` only makes it due earlier, and no second one is added.
_ADD = Statement(
    """INSERT INTO tk_jobs (id, kind, arguments, attempts, run_at, created_at)
    VALUES (:id, :kind, :arguments, 0, {now} + :delay_ms, {now})"""
)
_HASTEN = Statement(
    """UPDATE tk_jobs SET run_at = CASE WHEN run_at < {now} + :delay_ms THEN run_at ELSE {now} + :delay_ms END
    WHERE kind = :kind AND arguments = :arguments AND holder IS NULL RETURNING id"""
)
# Claims the jobs of a kind that are due; no two nodes get the same one.
_TAKE_DUE = Statement(
    """UPDATE tk_jobs SET lease_until = {now} + :lease_ms, holder = :holder, attempts = attempts + 1
    WHERE id IN (SELECT id FROM tk_jobs
    WHERE kind = :kind AND run_at <= {now} AND (lease_until IS NULL OR lease_until < {now})
    ORDER BY run_at LIMIT :limit) RETURNING id, kind, arguments, attempts""",
    postgres="""UPDATE tk_jobs SET lease_until = {now} + :lease_ms, holder = :holder, attempts = attempts + 1
    WHERE id IN (SELECT id FROM tk_jobs
    WHERE kind = :kind AND run_at <= {now} AND (lease_until IS NULL OR lease_until < {now})
    ORDER BY run_at LIMIT :limit FOR UPDATE SKIP LOCKED) RETURNING id, kind, arguments, attempts""",
)
# Likewise, but leaves out the jobs of some users: those who have as many running as they may.
_TAKE_DUE_OF_OTHERS = Statement(
    """UPDATE tk_jobs SET lease_until = {now} + :lease_ms, holder = :holder, attempts = attempts + 1
    WHERE id IN (SELECT id FROM tk_jobs
    WHERE kind = :kind AND run_at <= {now} AND (lease_until IS NULL OR lease_until < {now})
        AND COALESCE(json_extract(arguments, '$.user_id'), '') NOT IN (
            SELECT value FROM json_each(:not_for))
    ORDER BY run_at LIMIT :limit) RETURNING id, kind, arguments, attempts""",
    postgres="""UPDATE tk_jobs SET lease_until = {now} + :lease_ms, holder = :holder, attempts = attempts + 1
    WHERE id IN (SELECT id FROM tk_jobs
    WHERE kind = :kind AND run_at <= {now} AND (lease_until IS NULL OR lease_until < {now})
        AND COALESCE(CAST(arguments AS json) ->> 'user_id', '') NOT IN (
            SELECT json_array_elements_text(CAST(:not_for AS json)))
    ORDER BY run_at LIMIT :limit FOR UPDATE SKIP LOCKED) RETURNING id, kind, arguments, attempts""",
)
# When a node ends, its running jobs start over; this attempt does not count.
_RELEASE = Statement(
    """UPDATE tk_jobs SET lease_until = NULL, holder = NULL, attempts = attempts - 1
    WHERE holder = :holder"""
)
# At a start without other processes: the holders are dead. Here the attempts count.
_RELEASE_ALL = Statement("UPDATE tk_jobs SET lease_until = NULL, holder = NULL WHERE holder IS NOT NULL")
# Only the latest claim counts: a node that stalled may wake up when another one has claimed the job, or
# when it has claimed the job again itself.
_CLAIMED = "id = :id AND holder = :holder AND attempts = :attempts"
_RENEW = Statement(f"UPDATE tk_jobs SET lease_until = {{now}} + :lease_ms WHERE {_CLAIMED} RETURNING id")
_FINISH = Statement(f"DELETE FROM tk_jobs WHERE {_CLAIMED} RETURNING id")
_POSTPONE = Statement(
    f"""UPDATE tk_jobs SET lease_until = NULL, holder = NULL, run_at = {{now}} + :delay_ms, error = :error
    WHERE {_CLAIMED} RETURNING id"""
)


def _claim(job: Job) -> dict[str, Any]:
    return {"id": job.id, "holder": job.holder, "attempts": job.attempts}


def _add(job: Job, delay_ms: int) -> Plan[None]:
    values = {"kind": job.kind, "arguments": to_json(job.arguments), "delay_ms": delay_ms}
    if not (yield _HASTEN(**values)):
        yield _ADD(id=job.id, **values)


class SqlJobs:
    """The jobs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, job: Job, *, delay_ms: int = 0) -> None:
        """Stores a job that is due after a delay; an identical waiting job is rescheduled instead."""
        await self._database.write(lambda: _add(job, delay_ms))

    async def take(
        self, holder: str, kind: str, *, lease_ms: int, limit: int, not_for: Collection[str] = ()
    ) -> Sequence[Job]:
        """Claims due jobs of a kind; if the holder dies, its claim ends with the lease.

        Jobs for the users in `not_for` wait.
        """
        values = {"holder": holder, "kind": kind, "lease_ms": lease_ms, "limit": limit}
        take = _TAKE_DUE_OF_OTHERS if not_for else _TAKE_DUE
        rows = await self._database.execute(take(**values, not_for=to_json(list(not_for))))
        return [Job(id_, kind, to_object(given), attempts, holder) for id_, kind, given, attempts in rows]

    async def renew(self, job: Job, *, lease_ms: int) -> bool:
        """Extends a claim by a lease from now; False if it has ended, and the job may be another's."""
        return bool(await self._database.execute(_RENEW(**_claim(job), lease_ms=lease_ms)))

    async def release(self, holder: str) -> None:
        """Releases jobs that a holder claimed and won't do, as if never claimed."""
        await self._database.execute(_RELEASE(holder=holder))

    async def release_all(self) -> None:
        """Releases all claimed jobs, for a process that is alone; their attempts count."""
        await self._database.execute(_RELEASE_ALL())

    async def finish(self, job: Job) -> bool:
        """Deletes a finished job; False if its claim has ended, and it may be another's."""
        return bool(await self._database.execute(_FINISH(**_claim(job))))

    async def postpone(self, job: Job, *, delay_ms: int, error: str) -> bool:
        """Returns a failed job to the queue; False if its claim has ended, and it may be another's."""
        postpone = _POSTPONE(**_claim(job), delay_ms=delay_ms, error=error)
        return bool(await self._database.execute(postpone))
