"""A node's periodic work on turns."""

import asyncio
from collections.abc import Awaitable, Callable

from threadkeep.loops import Loop, Loops

BEAT_S = 1.0


def beat(loops: Loops, name: str, look_after: Callable[[], Awaitable[None]]) -> Loop:
    """Looks after turns periodically, as long as the node runs."""

    async def until_next() -> None:
        await asyncio.sleep(BEAT_S)

    # No longer pause after failures: leases would expire.
    return loops.start(name, look_after, until_next, longest_pause_s=BEAT_S)
