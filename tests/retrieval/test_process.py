"""Worker processes: they are ended for good, whoever is told to stop meanwhile."""

import asyncio
import sys

import pytest

from tests.mcp.running import is_alive
from threadkeep.retrieval.process import end_process


async def test_process_is_seen_to_end_by_one_who_is_told_to_stop_again_and_again():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; time.sleep(600)"), start_new_session=True
    )
    ending = asyncio.create_task(end_process(process))
    while not ending.done():
        await asyncio.sleep(0)
        ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert process.returncode is not None
    assert not is_alive(process.pid)
