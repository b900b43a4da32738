"""The processes that we start: their environment, and how they end."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process

_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


def worker_environment() -> dict[str, str]:
    """What a worker needs to find its code, and no more: no key, no password."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


async def end_process(process: Process) -> None:
    """Kills a process that leads its own group, and waits until it has ended.

    A caller that is cancelled meanwhile stops only after that: a killed process takes a moment to end, and
    would otherwise be left behind.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    ended = asyncio.create_task(process.wait())
    cancelled: asyncio.CancelledError | None = None
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
