"""What every store of import runs does: the database's here, on each database."""

from typing import Any

from tests.making import ALICE, BOB, NOW
from threadkeep.domain.ids import AgentId, ConversationId, ImportId, new_uuid
from threadkeep.domain.import_run import (
    ImportedConversation,
    ImportFailure,
    ImportProblem,
    ImportProgress,
    ImportRun,
    ImportStatus,
)
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.store import Store

PROGRESS = ImportProgress(
    found=3,
    done=2,
    imported=1,
    left_out=1,
    problems=(ImportProblem("对话 2", "it is damaged"),),
    notes=("A file is listed by name only.",),
    conversations=(ImportedConversation(ConversationId(new_uuid()), "渡轮"),),
)


def make_run(**changes: Any) -> ImportRun:
    values: dict[str, Any] = {
        "id": ImportId(new_uuid()),
        "user_id": ALICE,
        "agent_id": AgentId(new_uuid()),
        "file_name": "export.zip",
        "size": 5 * 1024**3,
        "status": ImportStatus.RUNNING,
        "progress": ImportProgress(),
        "started_at": NOW,
    }
    return ImportRun(**values | changes)


async def test_run_is_one_at_a_time_and_comes_back_as_it_ended(store: Store):
    run = make_run()
    assert await store.import_runs.begin(run, most=10) is None
    assert await store.import_runs.begin(make_run(), most=10) == run.id
    assert await store.import_runs.begin(make_run(user_id=BOB), most=10) is None
    assert await store.import_runs.note(run.id, PROGRESS)
    noted = await store.import_runs.get(ALICE, run.id)
    assert noted and noted.progress == PROGRESS and noted.status is ImportStatus.RUNNING
    failure = ImportFailure("UNSUPPORTED_IMPORT", "It is damaged.", "damaged")
    await store.import_runs.end(run.id, ImportStatus.FAILED, PROGRESS, NOW + 5, failure)
    await store.import_runs.end(run.id, ImportStatus.COMPLETED, ImportProgress(), NOW + 9)
    ended = make_run(
        id=run.id,
        agent_id=run.agent_id,
        status=ImportStatus.FAILED,
        progress=PROGRESS,
        ended_at=NOW + 5,
        failure=failure,
    )
    assert await store.import_runs.latest(ALICE) == [ended]
    assert await store.import_runs.get(BOB, run.id) is None
    assert not await store.import_runs.note(run.id, PROGRESS)


async def test_only_its_user_stops_a_run(store: Store):
    run = make_run()
    await store.import_runs.begin(run, most=10)
    await store.import_runs.ask_to_stop(BOB, run.id)
    assert await store.import_runs.note(run.id, PROGRESS)
    await store.import_runs.ask_to_stop(ALICE, run.id)
    assert not await store.import_runs.note(run.id, PROGRESS)


async def test_run_whose_node_is_gone_was_interrupted_and_leaves_room(store: Store):
    run = make_run()
    await store.import_runs.begin(run, most=10)
    before = await store.import_runs.get(ALICE, run.id)
    assert before and before.status is ImportStatus.RUNNING
    await make_silent(store, run.id)
    (silent,) = await store.import_runs.latest(ALICE)
    assert silent.status is ImportStatus.INTERRUPTED and silent.ended_at is not None
    other = make_run(started_at=NOW + 1)
    assert await store.import_runs.begin(other, most=10) is None
    assert not await store.import_runs.note(run.id, PROGRESS), "the node comes back too late"
    assert [it.id for it in await store.import_runs.latest(ALICE)] == [other.id, run.id]


async def test_only_the_latest_runs_stay(store: Store):
    runs = [make_run(started_at=NOW + number) for number in range(4)]
    for run in runs:
        await store.import_runs.begin(run, most=3)
        await store.import_runs.end(run.id, ImportStatus.COMPLETED, PROGRESS, NOW)
    assert [it.id for it in await store.import_runs.latest(ALICE)] == [it.id for it in runs[:0:-1]]


async def make_silent(store: Store, run_id: ImportId) -> None:
    """As if the node of a run had died a minute ago."""
    database: Any = store.import_runs
    statement = "UPDATE tk_imports SET noted_at = noted_at - 60000 WHERE id = :id"
    await database._database.execute(Statement(statement)(id=run_id))
