"""Work that would keep others waiting is done in a thread."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from threadkeep.domain.events import LogChunk

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

MOST_AT_ONCE = 32 * 1024
"""How many characters of a turn's log the event loop handles in one go: some milliseconds."""


class LogWork:
    """What somebody makes of a turn's log, some chunks at a time; what is long is done in a thread.

    The end of a log may cost as much as all before it, because what is made of it often repeats that.
    """

    __slots__ = ("_length",)

    def __init__(self) -> None:
        self._length = 0
        """How many characters have come so far."""

    async def take(self, work: Callable[[Sequence[T]], R], chunks: Sequence[T], *, at_end: bool) -> R:
        """What some work on the next chunks returns; `at_end` says that they may be the last."""
        length = _length(chunks)
        self._length += length
        if length <= MOST_AT_ONCE and (not at_end or self._length <= MOST_AT_ONCE):
            return work(chunks)
        return await asyncio.to_thread(work, chunks)

    async def end(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What some work on all that has come returns."""
        if self._length <= MOST_AT_ONCE:
            return work(*args, **kwargs)
        return await asyncio.to_thread(work, *args, **kwargs)


def _length(chunks: Sequence[object]) -> int:
    """How much of a turn's log they hold; anything else that is streamed comes in small pieces."""
    return sum([len(it.events) for it in chunks if isinstance(it, LogChunk)])
