"""How long the event loop is busy in one go, by the CPU time of its thread: other processes don't matter."""

import asyncio
import time
from asyncio import events
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(slots=True)
class Busy:
    """The longest slice so far."""

    longest_s: float = 0.0
    what: str = ""


@asynccontextmanager
async def watching_the_loop() -> AsyncGenerator[Busy]:
    """Notes the longest slice of the loop's CPU time during the block."""
    busy = Busy()
    run: Any = events.Handle._run  # pyright: ignore[reportPrivateUsage]

    def timed(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began
        if took > busy.longest_s:
            busy.longest_s, busy.what = took, repr(handle)[:300]

    with mock.patch.object(events.Handle, "_run", timed):
        await asyncio.sleep(0)  # the current slice began before
        yield busy
        await asyncio.sleep(0)  # the slice that the request ended in counts, too
