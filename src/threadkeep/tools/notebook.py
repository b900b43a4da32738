"""Memories in a project's folder, for PromptX on its own: one line of JSON per memory."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.memory import Memory

FILE = Path(".promptx", "memory", "threadkeep.jsonl")
MOST_BYTES = 16 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Memory).decode


class FileNotebook:
    """The memories of a project. Several processes may write: each memory is one append."""

    def __init__(self, project: Path, *, most: int) -> None:
        self._path = project / FILE
        self._most = most

    async def add(self, memory: Memory) -> None:
        """Appends a memory; returns when it is on the disk."""
        await asyncio.to_thread(self._add, memory)

    async def latest(self) -> Sequence[Memory]:
        """The memories, newest first; of two with the same content, the newer one."""
        return await asyncio.to_thread(self._latest)

    def _add(self, memory: Memory) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                if file.tell() > MOST_BYTES:
                    raise InvalidRequest(f"This project's memory is full. Shorten {FILE}.")
                # The newline comes first, so that a line that a crash cut off doesn't spoil the next one.
                file.write(b"\n" + _encode(memory))
                os.fsync(descriptor)
        except OSError as exc:
            raise InvalidRequest(f"Couldn't write this project's memory: {exc.strerror}.") from exc

    def _latest(self) -> Sequence[Memory]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise InvalidRequest(f"Couldn't read this project's memory: {exc.strerror}.") from exc
        newest: dict[str, Memory] = {}
        for memory in _backwards(content):
            newest.setdefault(memory.content, memory)
            if len(newest) == self._most:
                break
        return list(newest.values())


def _backwards(content: bytes) -> Iterator[Memory]:
    """The memories from last to first; skips lines that aren't memories."""
    for line in reversed(content.splitlines()):
        try:
            yield _decode(line)
        except (msgspec.MsgspecError, InvalidRequest):
            continue
