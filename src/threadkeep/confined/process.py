"""The confined processes that we start: how they start, what they can reach, and how they end.

Each runs a module of ours: `start_confined("threadkeep.files.pdf_process", path, reads=[path])`.
"""

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadkeep.confined.isolated import isolated_command

MOST_LINE_BYTES = 64 * 1024

_KEPT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH")


def confined_environment() -> dict[str, str]:
    """What a confined process needs to run, and no more: no key, no password."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


async def start_confined(
    module: str,
    *arguments: str,
    reads: Sequence[Path] = (),
    writes: Sequence[Path] = (),
    stdin: int = DEVNULL,
    limit: int = MOST_LINE_BYTES,
    pass_fds: Sequence[int] = (),
) -> Process:
    """Starts a module in a process whose output we read, and which leads its own process group.

    If the kernel has Landlock, the process can read these paths and the files it is passed, change what is
    below those it `writes`, and reach nothing else of ours and no network. A caller that is cancelled
    meanwhile, be it twice, stops only once the process has ended.
    """
    places = {
        "reads": [str(path.absolute()) for path in reads],
        "writes": [str(path.absolute()) for path in writes],
        "open": list(pass_fds),
    }
    confined = ("threadkeep.confined.confine", json.dumps(places), module)
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *isolated_command(*confined, *arguments, with_packages=True),
            stdin=stdin,
            stdout=PIPE,
            stderr=DEVNULL,
            env=confined_environment(),
            cwd="/",
            limit=limit,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    )
    cancelled = await _until_done(starting)
    if cancelled is None:
        return starting.result()
    if not starting.cancelled() and starting.exception() is None:
        await end_process(starting.result())
    raise cancelled


async def end_process(process: Process) -> None:
    """Kills a process that leads its own group, and waits until it has ended.

    A caller that is cancelled meanwhile stops only after that: a killed process takes a moment to end, and
    would otherwise be left behind.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    cancelled = await _until_done(asyncio.create_task(_read_to_the_end(process)))
    if cancelled is not None:
        raise cancelled


async def _read_to_the_end(process: Process) -> None:
    """Discards what is left in the pipes, until both sides have closed them.

    `wait` alone can return before that, or wait for a pipe that nobody reads.
    """
    if process.stdin is not None:
        process.stdin.close()
    while process.stdout is not None and await process.stdout.read(MOST_LINE_BYTES):
        pass
    await process.wait()


async def _until_done(task: "asyncio.Task[Any]") -> asyncio.CancelledError | None:
    """Waits for a task to the end; whether the caller was cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            cancelled = exc
    return cancelled
