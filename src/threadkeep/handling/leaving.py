"""Work that only its client wants: it ends when the client leaves."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from threadkeep.domain.errors import GenerationAborted
from threadkeep.tasks import end_tasks

T = TypeVar("T")


async def unless_client_leaves(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work; cancels it if the client leaves first."""
    running, left = asyncio.create_task(work), asyncio.create_task(_has_left(request))
    try:
        await asyncio.wait({running, left}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise GenerationAborted("The client left before the end.")
        return running.result()
    finally:
        await end_tasks(running, left)


async def _has_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
