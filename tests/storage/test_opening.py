"""Opening files: none stays open that nobody waits for any more."""

import asyncio
from pathlib import Path
from threading import Event
from typing import BinaryIO

import pytest

from threadkeep.storage.opening import open_in_thread
from threadkeep.testing.waiting import until


async def test_file_that_opens_after_its_reader_was_cancelled_is_closed(tmp_path: Path):
    (tmp_path / "file").touch()
    opened: list[BinaryIO] = []
    goes_on = Event()

    def open_late() -> BinaryIO:
        goes_on.wait()
        opened.append((tmp_path / "file").open("rb"))
        return opened[0]

    reading = asyncio.create_task(open_in_thread(open_late))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    goes_on.set()
    await until(lambda: bool(opened) and opened[0].closed)
