"""Clearing away goes on, whatever happens to one of its steps."""

import logging

import pytest

from threadkeep.domain.errors import StorageUnavailable
from threadkeep.jobs import cleaning
from threadkeep.jobs.cleaning import Cleaning
from threadkeep.testing.waiting import until


async def test_step_that_fails_keeps_no_other_from_being_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(cleaning, "CLEAN_UP_EVERY_S", 0)
    caplog.set_level(logging.INFO, "threadkeep")
    done: list[str] = []

    async def first() -> int:
        done.append("first")
        raise StorageUnavailable("The database is away.")

    async def second() -> None:
        done.append("second")
        raise OSError("a folder that cannot be read")

    async def third() -> int:
        done.append("third")
        return 3

    running = Cleaning({"old talk": first, "folders": second, "contents": third})
    await until(lambda: len(done) >= 6)
    await running.close()
    assert done[:6] == ["first", "second", "third"] * 2
    assert "cleanup of old talk failed: The database is away." in caplog.text
    assert "a folder that cannot be read" in caplog.text
    assert "removed 3 contents" in caplog.text
