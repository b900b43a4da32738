"""The hourly jobs go on, whatever happens to one of them."""

import logging

import pytest

from threadkeep import loops
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.jobs import hourly
from threadkeep.jobs.hourly import Hourly
from threadkeep.loops import Loops
from threadkeep.testing.waiting import until


async def test_job_that_fails_is_retried_soon_and_keeps_no_other_from_being_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(hourly, "EVERY_S", 0)
    monkeypatch.setattr(loops, "FIRST_PAUSE_S", 0.001)
    caplog.set_level(logging.INFO, "threadkeep")
    done: list[str] = []

    async def first() -> int:
        done.append("first")
        if done.count("first") == 1:
            raise StorageUnavailable("The database is away.")
        return 0

    async def second() -> None:
        done.append("second")
        if done.count("second") < 3:
            raise OSError("a folder that cannot be read")

    async def third() -> int:
        done.append("third")
        return 3

    running = Hourly({"old talk": first, "folders": second, "contents": third}, Loops())
    await until(lambda: len(done) >= 8)
    await running.close()
    assert done[:8] == ["first", "second", "third", "first", "second", "second", "first", "second"]
    assert "cleanup of old talk failed: The database is away." in caplog.text
    assert "a folder that cannot be read" in caplog.text
    assert "removed 3 contents" in caplog.text
