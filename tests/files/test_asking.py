"""A confined process that dies, hangs or floods: the file gets a clear error, and the process is gone."""

import asyncio
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from tests.mcp.running import is_alive
from threadkeep.confined import isolated
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.files import asking
from threadkeep.files.asking import ask_process


@pytest.fixture(autouse=True)
def workers_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confined processes find modules of the tests, too."""
    folders = [*isolated.package_folders(), str(Path(__file__).parents[2])]
    monkeypatch.setattr(isolated, "package_folders", lambda: folders)


async def ask(how: str, most_s: float = 30.0) -> bytes:
    """What a confined process says that goes wrong in this way."""
    return await ask_process("tests.files.broken_process", Path(how), noun="image", most_s=most_s)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("dies", "This image can't be read."),
        ("leaves", "This image can't be read."),
        ("floods", "This image can't be read."),
        ("spins", "This image takes too long to process."),
    ],
)
async def test_worker_that_breaks_is_an_unsupported_file_and_the_next_one_works(how: str, reason: str):
    with pytest.raises(UnsupportedFile) as refused:
        await ask(how)
    assert refused.value.message == reason
    assert await ask("works") == b"fine\n"


async def test_worker_that_talks_on_after_its_report_is_ended():
    assert await ask("answers and floods") == b"fine\n"


async def test_worker_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch):
    started = _watch(monkeypatch)
    with pytest.raises(UnsupportedFile, match="takes too long"):
        await ask("sleeps", most_s=0.5)
    assert not is_alive(started[0].pid)


async def test_worker_of_a_cancelled_upload_is_ended(monkeypatch: pytest.MonkeyPatch):
    started = _watch(monkeypatch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await ask("sleeps")
    assert not is_alive(started[0].pid)


def _watch(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The processes that are ended, noted before that."""
    started: list[Process] = []
    report = asking._report  # pyright: ignore[reportPrivateUsage]

    async def noted(process: Process, noun: str) -> bytes:
        started.append(process)
        return await report(process, noun)

    monkeypatch.setattr(asking, "_report", noted)
    return started
