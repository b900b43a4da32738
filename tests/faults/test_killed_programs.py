"""A process that runs an agent in code is killed at ten commits of its turn, and another one continues.

Each is a real process, and so are the signals. `make crash` sends them at every commit.
"""

import signal

import pytest

from tests.faults.crash_record import SIGNALS, Scene
from tests.faults.killing import order_courses
from tests.postgres import Postgres
from threadkeep.testing.commits import Position
from threadkeep.testing.crashes import Crash, positions

TEN = (
    "after begin",
    "before step_end find_order",
    "after text",
    "before pause",
    "after answer",
    "before step refund",
    "after step refund",
    "before step_end refund",
    "after step_end refund",
    "before the end",
)

INTERRUPTED = {
    (signal.SIGTERM, "before step_end refund"): "alike",  # it may end what it is doing
    (signal.SIGSTOP, "before step_end refund"): "unknown, extra call of is_booked",
}
"""What becomes of a turn whose process is told to end, or stands still for longer than its lease."""


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> Postgres | None:
    """A PostgreSQL, for courses on it."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


async def test_program_continues_in_another_process_when_its_own_is_killed_told_to_end_or_stopped(
    server: Postgres | None,
):
    async with order_courses(server) as (courses, processes):
        whole = await courses.whole()
        assert (whole.status, whole.steps["refund"].count) == ("COMPLETED", 1)
        crashes = [
            await courses.crashed(commit, position, courses.agent)
            for commit, position in positions(courses.commits)
            if str(position) in TEN
        ]
        nowhere = await courses.crashed(0, Position("after", "step nothing"), courses.agent)
        scene = Scene("PostgreSQL" if server else "SQLite", courses, processes)
        interrupted = {it: end for it, end in INTERRUPTED.items() if it[0] in SIGNALS[scene.database]}
        found = [
            await scene.interrupt(commit, position, number)
            for commit, position in positions(courses.commits)
            for number, at in interrupted
            if str(position) == at
        ]
    assert {(it.number, str(it.position)): it.cell for it in found} == interrupted
    assert (nowhere.outcome, nowhere.run) == ("not reached", None)
    outcomes = {str(it.position): it.outcome for it in crashes}
    unknown = {"after step refund", "before step_end refund"}
    assert outcomes == {it: "unknown" if it in unknown else "alike" for it in TEN}
    assert {str(it.position): booked(it) for it in crashes if it.outcome == "unknown"} == {
        "after step refund": "Nothing was booked.",
        "before step_end refund": "It is refunded.",
    }


def booked(crash: Crash) -> str:
    """What the agent found at the bank."""
    assert crash.run is not None
    return next(it for it in ("Nothing was booked.", "It is refunded.") if it in crash.run.text)
