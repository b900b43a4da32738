"""Opening files without holding up anybody, and without leaving one open."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, TypeVar

Opened = TypeVar("Opened", bound=BinaryIO | None)


async def open_in_thread(open_file: Callable[[], Opened]) -> Opened:
    """What `open_file` returns, called in a thread; a file that arrives after a cancellation is closed."""
    opening = asyncio.ensure_future(asyncio.to_thread(open_file))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: "asyncio.Future[BinaryIO | None]") -> None:
    with suppress(asyncio.CancelledError, OSError):  # nobody waits for the error
        if file := opening.result():
            file.close()
