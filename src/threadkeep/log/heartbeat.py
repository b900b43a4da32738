"""A node's periodic work on turns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from threadkeep.domain.errors import StorageError

log = logging.getLogger("threadkeep.turns")

BEAT_S = 1.0


async def beat(look_after: Callable[[], Awaitable[None]]) -> None:
    """Looks after turns periodically, as long as the node runs."""
    while True:
        await attempt(look_after)
        await asyncio.sleep(BEAT_S)


async def attempt(look_after: Callable[[], Awaitable[None]]) -> None:
    """Looks after turns once; logs a failure, for the next beat tries again."""
    try:
        await look_after()
    except StorageError as exc:
        log.warning("couldn't renew or recover turns: %s", exc.message)
    except Exception:
        log.exception("renewing and recovering turns failed")
