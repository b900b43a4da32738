"""Running turns for operators: whose they are and where they run, never their content."""

import asyncio
from collections.abc import Sequence

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, TurnInProgress, TurnNotFound
from threadkeep.domain.ids import TurnId, UserId, is_uuid, new_uuid
from threadkeep.domain.turn import ALL_ACTIVE, ActiveFilter, RunningTurn, Turn, TurnStatus, WaitsFor
from threadkeep.domain.user import User
from threadkeep.runtime.node import Node
from threadkeep.storage.store import Store

TURNS_AT_ONCE = 200


class RunningTurns:
    """The use cases of admins with running turns."""

    def __init__(self, store: Store, node: Node, clock: Clock) -> None:
        self._store = store
        self._node = node
        self._clock = clock

    @property
    def node_id(self) -> str:
        """This process among the nodes that run turns."""
        return self._node.id

    async def page(
        self, user: User, *, after: str | None, offset: int, limit: int, only: ActiveFilter = ALL_ACTIVE
    ) -> Sequence[RunningTurn]:
        """The active turns of all users on all nodes, oldest first."""
        _check_admin(user)
        return await self._store.active.page(after=after, offset=offset, limit=limit, only=only)

    async def waits_for(self, turn: Turn) -> WaitsFor | None:
        """What a turn waits for, if it does."""
        if turn.status is TurnStatus.RUNNING and turn.code is not None:
            active = await self._store.active.get(turn.id)
            return active.waits_for if active else None
        return "person" if turn.status is TurnStatus.WAITING else None

    async def abort(self, user: User, turn_id: str) -> bool:
        """Stops any user's turn and keeps its partial reply; False if it had already ended."""
        _check_admin(user)
        if not is_uuid(turn_id):
            raise TurnNotFound
        id_ = TurnId(turn_id.lower())
        turn = await self._store.active.get(id_)
        if turn is None:
            if await self._store.turns.status(id_) is None:
                raise TurnNotFound
            return False
        # Audited first: nobody may act on other people's turns without a trace.
        details = {"turnId": turn.id, "conversationId": turn.conversation_id, "userId": turn.user_id}
        await self._store.agents.note(
            AuditEntry(new_uuid(), self._clock(), user.id, "abort_turn", turn.agent_id, details)
        )
        if not await self._node.abort(turn.id):
            raise TurnInProgress(
                "The node running this turn isn't responding. Try again in a moment.", turn.id
            )
        return True

    async def abort_all_of(self, user_id: UserId) -> None:
        """Stops the turns of a user who is being deleted, even if a node doesn't respond."""
        for only in (ActiveFilter(waits_for="nothing"), ActiveFilter(waits_for="worker")):
            after: str | None = None
            while turns := await self._store.active.page(
                after=after, offset=0, limit=TURNS_AT_ONCE, only=only
            ):
                theirs = [turn.id for turn in turns if turn.user_id == user_id]
                await asyncio.gather(*map(self._node.abort, theirs))
                after = turns[-1].id


def _check_admin(user: User) -> None:
    if not user.is_admin:
        raise Forbidden("Only an admin can see and stop other users' turns.")
