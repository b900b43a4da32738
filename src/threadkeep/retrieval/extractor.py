"""Reads files in a separate process, which is killed when it takes too long."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from typing import BinaryIO

import msgspec

from threadkeep.confined.process import end_process, start_confined
from threadkeep.domain.document import Chunk
from threadkeep.ports.documents import ExtractedPart, ExtractionBroke, ExtractionFailed, IndexedChunk

MOST_S = 100.0
MOST_LINE_BYTES = 16 * 1024 * 1024
CHUNKS_A_PART = 25


class _Line(msgspec.Struct):
    """One line of the confined process."""

    text: str = ""
    position: int = 0
    page: int | None = None
    heading: str | None = None
    terms: list[str] = []
    progress: float = 0.0
    done: bool = False
    failed: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


class ProcessExtractor:
    """Reads each file in its own confined process."""

    def __init__(self, *, most_s: float = MOST_S) -> None:
        self._most_s = most_s

    async def extract(self, file: BinaryIO, media_type: str) -> AsyncGenerator[ExtractedPart]:
        """The chunks of a file, a few at a time.

        The confined process gets the open file, not its path, at which another file may be by then.
        """
        process = await start_confined(
            "threadkeep.retrieval.extraction_process",
            f"/dev/fd/{file.fileno()}",
            media_type,
            pass_fds=(file.fileno(),),
            limit=MOST_LINE_BYTES,
        )
        deadline = asyncio.get_running_loop().time() + self._most_s
        waiting: list[IndexedChunk] = []
        try:
            while True:
                line = await self._next(process, deadline)
                if line.failed is not None:
                    raise ExtractionFailed(line.failed)
                if not line.done:
                    chunk = Chunk(line.position, line.text, line.page, line.heading)
                    waiting.append(IndexedChunk(chunk, line.terms))
                if waiting and (line.done or len(waiting) >= CHUNKS_A_PART):
                    yield ExtractedPart(waiting, line.progress)
                    waiting = []
                if line.done:
                    return
        finally:
            await end_process(process)

    async def _next(self, process: Process, deadline: float) -> _Line:
        assert process.stdout is not None
        try:
            async with asyncio.timeout_at(deadline):
                raw = await process.stdout.readline()
        except TimeoutError as exc:
            raise ExtractionFailed(f"Processing the file took longer than {self._most_s:g} s.") from exc
        except ValueError as exc:  # a line longer than the limit
            raise ExtractionFailed("Part of the file is too long.") from exc
        if not raw.endswith(b"\n"):
            code = await process.wait()
            if code == -signal.SIGXCPU:
                raise ExtractionFailed("Processing the file took too long.")
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            raise ExtractionBroke(f"The process that read the file ended ({how}).")
        return _decode(raw)
