"""Opens turns on this node: each gets a lease and a log, ready to be stored."""

from dataclasses import dataclass

from threadkeep.domain.events import LogChunk
from threadkeep.log.writer import LogWriter, TurnLog, opening_entries
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.prepared_turn import PreparedTurn
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.storage.turns import Lease, NextTurn


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """A prepared turn with this node's lease and the opening of its log. It runs once it is stored."""

    prepared: PreparedTurn
    lease: Lease
    log: TurnLog
    opening: LogChunk

    @property
    def held(self) -> HeldTurn:
        """The turn as this node holds it."""
        begun = self.prepared.new.begun
        return HeldTurn(begun.turn, begun.conversation, begun.assistant_message, self.lease.fence)

    @property
    def as_next(self) -> NextTurn:
        """The turn as stored with the end of the previous one."""
        return NextTurn(self.prepared.new, self.lease, self.opening)


def open_turn(prepared: PreparedTurn, node_id: str, writer: LogWriter) -> OpenedTurn:
    """Gives a turn a lease and a log."""
    lease, begun = lease_of(node_id), prepared.new.begun
    turn = begun.turn
    turn_log = writer.open(turn, begun.conversation, lease.fence)
    opening = turn_log.take(*opening_entries(turn, by_admin=prepared.by_admin))
    assert opening is not None
    return OpenedTurn(prepared, lease, turn_log, opening)
