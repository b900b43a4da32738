"""Threadkeep that knows for how long its event loop has been kept from other work."""

import asyncio
import time

from starlette.types import Receive, Scope, Send

from bench.hosted import create_app as create_threadkeep
from threadkeep.http.app import Threadkeep

STALL_PATH = "/longest-stall"
TICK_S = 0.001


class Ticking:
    """An app that answers with the longest stall since it was last asked, in milliseconds of processor time.

    Not by the clock: on a machine that is busy with other things that would measure those.
    """

    def __init__(self, app: Threadkeep) -> None:
        self._app = app
        self._longest = 0.0
        self._ticking: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != STALL_PATH:
            await self._app(scope, receive, send)
            return
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        body, self._longest = f"{self._longest * 1000:.1f}".encode(), 0.0
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def _tick(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.thread_time()
            self._longest = max(self._longest, now - last)
            last = now


def create_app() -> Ticking:
    """For uvicorn."""
    return Ticking(create_threadkeep())
