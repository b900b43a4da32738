"""Worker processes: they are ended for good, whoever is told to stop meanwhile."""

import asyncio
import gc
import sys
import warnings
from contextlib import suppress

import pytest

from tests.mcp.running import is_alive
from threadkeep.retrieval.process import end_process, start_process


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


@pytest.mark.parametrize("after", range(6))
def test_start_that_is_cancelled_twice_leaves_nothing_open(after: int):
    async def cancel_twice() -> None:
        starting = asyncio.create_task(start_process("sleep", "60"))
        for _ in range(after):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await end_process(await starting)

    gc.collect()
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        asyncio.run(cancel_twice())
        gc.collect()
    assert [str(it.message) for it in left_open] == []
