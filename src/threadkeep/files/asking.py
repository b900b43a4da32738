"""Asks a confined process about one file: starts it, reads one line, and ends it."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path

from threadkeep.confined.process import end_process, start_confined
from threadkeep.domain.errors import UnsupportedFile

MOST_REPORT_BYTES = 16 * 1024
_OUT_OF_TIME = -signal.SIGXCPU


async def ask_process(
    module: str, source: Path, *, writes: Sequence[Path] = (), noun: str, most_s: float
) -> bytes:
    """The report on a file; raises UnsupportedFile if it dies, takes too long or reports nonsense.

    Its arguments are the file and the folders that it writes to.
    """
    arguments = [str(path.absolute()) for path in (source, *writes)]
    process = await start_confined(module, *arguments, reads=[source], writes=writes, limit=MOST_REPORT_BYTES)
    try:
        async with asyncio.timeout(most_s):
            return await _report(process, noun)
    except TimeoutError as exc:
        raise took_too_long(noun) from exc
    finally:
        await end_process(process)


async def _report(process: Process, noun: str) -> bytes:
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
    except ValueError as exc:  # a line longer than the limit
        raise cannot_be_read(noun) from exc
    if line.endswith(b"\n"):
        return line
    raise took_too_long(noun) if await process.wait() == _OUT_OF_TIME else cannot_be_read(noun)


def took_too_long(noun: str) -> UnsupportedFile:
    """The file takes too long to read."""
    return UnsupportedFile(f"This {noun} takes too long to process.")


def cannot_be_read(noun: str) -> UnsupportedFile:
    """The file broke its reader, and would again."""
    return UnsupportedFile(f"This {noun} can't be read.")
