"""The event logs of turns, and who may write them.

A turn is written by one node, which holds a lease that runs out unless it is renewed. Every write names
the lease's fence; a node whose turn was taken over writes nothing any more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a node to write a turn, for `length_ms` from now by the database's clock."""

    node_id: str
    fence: int
    length_ms: int


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A run of consecutive events of one turn: one JSON object a line."""

    turn_id: TurnId
    first_seq: int
    last_seq: int
    events: str


RebuildReply = Callable[[Message, Sequence[LogChunk]], Message]
"""A finished reply as its turn's log describes it, or as it is where the log is gone or disagrees; pure."""


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn that a node may write, with everything that is needed to end it."""

    turn: Turn
    conversation: Conversation
    reply: Message
    fence: int


class TurnLogStore(Protocol):
    """Where event logs are kept."""

    async def append(self, chunks: Sequence[tuple[LogChunk, int]]) -> set[TurnId]:
        """Keeps chunks, each under its turn's fence; gives the turns whose chunk was accepted."""
        ...

    async def read(self, turn_id: TurnId, after_seq: int) -> Sequence[LogChunk]:
        """The chunks that hold events after `after_seq`, in order."""
        ...

    async def renew(self, node_id: str, turn_ids: Iterable[TurnId], length_ms: int) -> dict[TurnId, bool]:
        """Renews a node's leases; gives the turns that are still its own and whether to abort them."""
        ...

    async def request_abort(self, turn_id: TurnId) -> None:
        """Asks whoever runs the turn to abort it."""
        ...

    async def abandoned(self, node_id: str, *, alone: bool) -> Sequence[TurnId]:
        """Running turns whose lease has run out; all of other nodes too, where we are known to be alone."""
        ...

    async def adopt(self, turn_id: TurnId, lease: Lease, *, alone: bool) -> HeldTurn | None:
        """Takes an abandoned turn over; None when it has ended or somebody else was first."""
        ...

    async def trim(self, ended_before: int) -> int:
        """Removes the logs of turns that ended before a time; gives how many chunks went."""
        ...
