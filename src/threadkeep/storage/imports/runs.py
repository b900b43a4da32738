"""The progress of imports, in the database."""

from collections.abc import Sequence

import msgspec

from threadkeep.domain.ids import ImportId, UserId
from threadkeep.domain.import_run import SILENT_MS, ImportFailure, ImportProgress, ImportRun, ImportStatus
from threadkeep.storage.database.columns import to_json, to_json_or_null, to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.file_rows import lock_user
from threadkeep.storage.users import ENSURE_USER

_SILENT = f"status = 'RUNNING' AND noted_at < {{now}} - {SILENT_MS}"
_COLUMNS = f"""id, user_id, agent_id, file_name, size,
    CASE WHEN {_SILENT} THEN 'INTERRUPTED' ELSE status END, progress, failure, started_at,
    CASE WHEN {_SILENT} THEN noted_at ELSE ended_at END"""

_GET = Statement(f"SELECT {_COLUMNS} FROM tk_imports WHERE id = :id AND user_id = :user_id")
_LATEST = Statement(
    f"SELECT {_COLUMNS} FROM tk_imports WHERE user_id = :user_id ORDER BY started_at DESC, id DESC"
)
# A node that comes back finds that its run has ended.
_END_SILENT = Statement(
    f"""UPDATE tk_imports SET status = 'INTERRUPTED', ended_at = noted_at
    WHERE user_id = :user_id AND {_SILENT}"""
)
_RUNNING = Statement("SELECT id FROM tk_imports WHERE user_id = :user_id AND status = 'RUNNING'")
_FORGET_OLD = Statement(
    """DELETE FROM tk_imports WHERE user_id = :user_id AND id NOT IN (
        SELECT id FROM tk_imports WHERE user_id = :user_id ORDER BY started_at DESC, id DESC LIMIT :most)"""
)
_ADD = Statement(
    """INSERT INTO tk_imports (id, user_id, agent_id, file_name, size, status, progress, started_at, noted_at)
    VALUES (:id, :user_id, :agent_id, :file_name, :size, :status, :progress, :started_at, {now})"""
)
_NOTE = Statement(
    """UPDATE tk_imports SET progress = :progress, noted_at = {now}
    WHERE id = :id AND status = 'RUNNING' RETURNING stops"""
)
_END = Statement(
    """UPDATE tk_imports SET status = :status, progress = :progress, failure = :failure, ended_at = :now
    WHERE id = :id AND status = 'RUNNING'"""
)
# Locked until the commit: neither does the run end meanwhile, nor is its user deleted.
STILL_RUNS = Statement(
    "SELECT 1 FROM tk_imports WHERE id = :id AND status = 'RUNNING'", locks="FOR NO KEY UPDATE"
)
_STOP = Statement("UPDATE tk_imports SET stops = TRUE WHERE id = :id AND user_id = :user_id")


class SqlImportRuns:
    """The latest runs of each user."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run: ImportRun, *, most: int) -> ImportId | None:
        """Stores a new run and deletes all but the latest `most`, unless another runs: returns its id."""
        return await self._database.write(lambda: _begin(run, most))

    async def note(self, run_id: ImportId, progress: ImportProgress) -> bool:
        """Stores a run's progress; returns whether it may go on. It may not if it was stopped or replaced."""
        rows = await self._database.execute(_NOTE(id=run_id, progress=to_json(progress)))
        return bool(rows) and not rows[0][0]

    async def end(
        self,
        run_id: ImportId,
        status: ImportStatus,
        progress: ImportProgress,
        now: int,
        failure: ImportFailure | None = None,
    ) -> None:
        """Ends a run that has not ended yet."""
        values = {"progress": to_json(progress), "failure": to_json_or_null(failure)}
        await self._database.execute(_END(id=run_id, status=status.value, now=now, **values))

    async def get(self, user_id: UserId, run_id: ImportId) -> ImportRun | None:
        """One of the user's runs."""
        rows = await self._database.fetch(_GET(user_id=user_id, id=run_id))
        return _run(rows[0]) if rows else None

    async def latest(self, user_id: UserId) -> Sequence[ImportRun]:
        """The user's runs, newest first."""
        return [_run(row) for row in await self._database.fetch(_LATEST(user_id=user_id))]

    async def ask_to_stop(self, user_id: UserId, run_id: ImportId) -> None:
        """Asks the node of a run to stop it, if it still runs."""
        await self._database.execute(_STOP(user_id=user_id, id=run_id))


def _begin(run: ImportRun, most: int) -> Plan[ImportId | None]:
    yield ENSURE_USER(id=run.user_id, now=run.started_at)
    yield lock_user(run.user_id)
    yield _END_SILENT(user_id=run.user_id)
    if running := (yield _RUNNING(user_id=run.user_id)):
        return running[0][0]
    yield _FORGET_OLD(user_id=run.user_id, most=most - 1)
    yield _ADD(
        id=run.id,
        user_id=run.user_id,
        agent_id=run.agent_id,
        file_name=run.file_name,
        size=run.size,
        status=run.status.value,
        progress=to_json(run.progress),
        started_at=run.started_at,
    )
    return None


def _run(row: Row) -> ImportRun:
    id_, user_id, agent_id, file_name, size, status, progress, failure, started_at, ended_at = row
    return ImportRun(
        id=id_,
        user_id=user_id,
        agent_id=agent_id,
        file_name=file_name,
        size=size,
        status=ImportStatus(status),
        progress=msgspec.convert(to_value(progress), ImportProgress),
        started_at=started_at,
        ended_at=ended_at,
        failure=msgspec.convert(to_value(failure), ImportFailure | None),
    )
