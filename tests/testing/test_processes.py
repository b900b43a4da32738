"""Threadkeeps in processes of their own: they start, end by a signal at a commit, and none is left behind."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from examples.orders import shop

from tests.faults.killing import kind_model
from threadkeep.testing import until
from threadkeep.testing.crashes import Killed
from threadkeep.testing.processes import Process, Processes, ProcessFailed


def is_there(process: Process) -> bool:
    """Whether the system knows it."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def parent_of(process: Process) -> int:
    """The process that has started it."""
    return int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_process_that_does_not_start_says_why_and_none_is_left_behind(tmp_path: Path):
    started: dict[str, Process] = {}

    async def live(name: str, processes: Processes, **settings: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        with kind_model() as model:
            async with Killed(processes).live(shop.orders, folder, settings, model) as life:
                assert life.process is not None
                started[name] = life.process
                await asyncio.Event().wait()

    async with Processes([shop.orders], {}) as processes:
        with pytest.raises(ProcessFailed, match=r"ended with status 1(.|\n)*THREADKEEP_LOG_LEVEL"):
            await live("failing", processes, log_level="nonsense")
        tasks = {it: asyncio.create_task(live(it, processes)) for it in ("cancelled", "stopped", "orphan")}
        await until(lambda: len(started) == 3)
        tasks["cancelled"].cancel()
        await asyncio.wait((tasks["cancelled"],))
        assert [name for name, it in started.items() if not is_there(it)] == ["cancelled"]
        await started["stopped"].send(signal.SIGSTOP)
        tasks["stopped"].cancel()
        await asyncio.wait((tasks["stopped"],))
        assert not is_there(started["stopped"])
        os.kill(parent_of(started["orphan"]), signal.SIGKILL)
        await until(lambda: not is_there(started["orphan"]))
        tasks["orphan"].cancel()
        await asyncio.wait((tasks["orphan"],))
        with pytest.raises(ProcessFailed, match="that starts the others has ended"):
            await live("late", processes)
