"""`threadkeep`, but keeping a payload stops for good at one point, so that a test can kill it right there.

    python stalling.py POINT serve …

POINT is `file` (the content is written, its row is not) or `row` (nothing refers to the row yet).
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any

from threadkeep.cli import main
from threadkeep.storage.payloads.database import SqlPayloads
from threadkeep.storage.payloads.folder import FolderContents

STOPPED = "stopped for good"


def stopping_after(step: Callable[..., Awaitable[None]]) -> "Callable[..., CoroutineType[Any, Any, None]]":
    """A step after which nothing comes."""

    async def stop(*arguments: Any) -> None:
        await step(*arguments)
        print(STOPPED, flush=True)
        await asyncio.Event().wait()

    return stop


if __name__ == "__main__":
    point, *arguments = sys.argv[1:]
    if point == "file":
        FolderContents.write = stopping_after(FolderContents.write)
    else:
        SqlPayloads.add = stopping_after(SqlPayloads.add)
    sys.exit(main(arguments))
