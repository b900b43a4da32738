"""Leases: a node's right to write the turns that it runs, which lapses unless renewed."""

from collections.abc import Mapping

from threadkeep.clock import monotonic
from threadkeep.domain.ids import TurnId
from threadkeep.domain.turn import Lease
from threadkeep.engine.stop import TurnLost
from threadkeep.runtime.heartbeat import BEAT_S
from threadkeep.runtime.running import NodeTurn, NodeTurns
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import LEASE_MS

FIRST_FENCE = 1


def lease_of(node_id: str) -> Lease:
    """The lease with which a node begins a turn or takes one over."""
    return Lease(node_id, FIRST_FENCE, LEASE_MS)


class KeptLease:
    """The lease of a turn that this node has taken over and doesn't run yet, because it reads its log."""

    def __init__(self, node_id: str, store: SqlTurnLog, turn_id: TurnId) -> None:
        self._node_id = node_id
        self._store = store
        self._turn_id = turn_id
        self._kept_at = monotonic()

    async def keep(self) -> bool:
        """Renews it if it is time to; returns whether to abort the turn. TurnLost if another node has it."""
        if monotonic() - self._kept_at < BEAT_S:
            return False
        held = await self._store.renew(self._node_id, [self._turn_id], LEASE_MS)
        if self._turn_id not in held:
            raise TurnLost
        self._kept_at = monotonic()
        return held[self._turn_id]


class Leases:
    """Renews the leases of the turns that run here."""

    def __init__(self, node_id: str, store: SqlTurnLog, running: NodeTurns) -> None:
        self._node_id = node_id
        self._store = store
        self._running = running

    async def renew(self) -> None:
        """Renews them, stops turns whose lease is lost, and picks up aborts whose signal was lost."""
        ours = self._running.all()
        if not ours:
            return
        asked_at = monotonic()
        held = await self._renew(ours)
        for turn_id, turn in ours.items():
            if turn_id not in held:
                turn.log.error = turn.log.error or TurnLost()
                turn.control.stop.request("interrupt")
                continue
            turn.leased_until = asked_at + LEASE_MS / 1000
            turn.control.nudge()  # a signal may be lost
            if held[turn_id]:
                turn.control.stop.request("abort")

    async def _renew(self, ours: Mapping[TurnId, NodeTurn]) -> Mapping[TurnId, bool]:
        """Renews them, and notes what their programs are doing now where that has changed."""
        steps = {id_: turn.steps.oldest for id_, turn in ours.items() if turn.steps.oldest != turn.noted_step}
        others = ours.keys() - steps.keys()
        held = await self._store.renew(self._node_id, others, LEASE_MS) if others else {}
        if steps:
            held |= await self._store.renew_noting(self._node_id, steps, LEASE_MS)
            for id_, step in steps.items():
                ours[id_].noted_step = step
        return held
