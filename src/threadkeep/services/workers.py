"""The processes that run the programs of agents in code, for operators."""

from collections.abc import Mapping, Sequence

from threadkeep.domain.agent import SeenWorker
from threadkeep.domain.errors import Forbidden
from threadkeep.domain.user import User
from threadkeep.runtime.node import Node
from threadkeep.runtime.programs import NodePrograms
from threadkeep.storage.store import Store


class Workers:
    """The use cases of admins with them."""

    def __init__(self, store: Store, node: Node) -> None:
        self._store = store
        self._node = node

    @property
    def here(self) -> NodePrograms:
        """The programs of this process."""
        return self._node.programs

    async def all(self, user: User) -> Sequence[SeenWorker]:
        """Those of all nodes, the oldest first."""
        if not user.is_admin:
            raise Forbidden("Only an admin can see the workers.")
        return await self._store.programs.workers()

    async def waiting_turns(self) -> Mapping[str, int]:
        """How many turns wait for each program that is known, on all nodes."""
        known = {it.key: 0 for it in await self._store.programs.all()}
        return {**known, **await self._store.absences.waiting()}
