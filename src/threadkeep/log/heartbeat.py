"""The beat at which a node looks after turns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from threadkeep.domain.errors import StorageError

log = logging.getLogger("threadkeep.turns")

BEAT_S = 1.0


async def beat(look_after: Callable[[], Awaitable[None]]) -> None:
    """Looks after turns from time to time, for as long as the node runs."""
    while True:
        await attempt(look_after)
        await asyncio.sleep(BEAT_S)


async def attempt(look_after: Callable[[], Awaitable[None]]) -> None:
    """Looks after turns once; what goes wrong is logged, and goes better at the next beat."""
    try:
        await look_after()
    except StorageError as exc:
        log.warning("couldn't renew or recover turns: %s", exc.message)
    except Exception:
        log.exception("renewing and recovering turns failed")
