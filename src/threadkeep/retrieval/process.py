"""The processes that we start: how they start, their environment, and how they end."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from typing import Any

MOST_LINE_BYTES = 64 * 1024

_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


def worker_environment() -> dict[str, str]:
    """What a worker needs to find its code, and no more: no key, no password."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


async def start_process(
    *command: str, stdin: int = DEVNULL, limit: int = MOST_LINE_BYTES, pass_fds: Sequence[int] = ()
) -> Process:
    """Starts a process that leads its own group, and whose output is read.

    A caller that is cancelled meanwhile, be it twice, stops only once the process has ended.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=PIPE,
            stderr=DEVNULL,
            env=worker_environment(),
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
    cancelled = await _until_done(asyncio.create_task(process.wait()))
    if cancelled is not None:
        raise cancelled


async def _until_done(task: "asyncio.Task[Any]") -> asyncio.CancelledError | None:
    """Waits for a task to the end; whether the caller was cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            cancelled = exc
    return cancelled
