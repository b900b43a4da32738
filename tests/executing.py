"""Recording runs of other engines without a server."""

from typing import Any, cast

from tests.making import NOW
from threadkeep.services.executions import Executions
from threadkeep.storage.store import Store


class _Unheard:
    """Nobody listens, and nothing is indexed."""

    def note(self, *_: Any) -> None:
        pass

    async def announce(self, *_: Any) -> None:
        pass


def executions_on(store: Store) -> Executions:
    """The use cases of recorded runs."""
    unheard = cast("Any", _Unheard())
    return Executions(store, unheard, unheard, lambda: NOW)
