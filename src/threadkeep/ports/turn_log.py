"""The event logs of turns, and who may write them.

One node writes a turn; it holds a lease that expires unless renewed. Every write names the lease's fence, so
a node whose turn was taken over can no longer write it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import TurnId
from threadkeep.domain.message import Message
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn

LEASE_MS = 4_000
LOG_VERSION = 3
"""The version of log and journal: a node ignores turns that a later version has written."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a node to write a turn, for `length_ms` from now by the database's clock."""

    node_id: str
    fence: int
    length_ms: int


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn that a node may write, with everything needed to end it."""

    turn: Turn
    conversation: Conversation
    reply: Message
    fence: int
    attempts: int = 0
    """How often its node died since the last finished model call."""
    ownerless_ms: int = 0
    """How long no node had run it when it was taken over."""
    is_aborting: bool = False
    """Whether its user has asked to stop it."""


Paused = Literal["paused", "answered", "aborting"]
"""The outcome of pausing a turn."""


class TurnLogStore(Protocol):
    """Storage of event logs."""

    async def append(
        self, chunks: Sequence[tuple[LogChunk, int]], receipts: Sequence[tuple[TurnReceipt, int]] = ()
    ) -> set[TurnId]:
        """Stores chunks, each under its turn's fence; returns the turns whose chunk was accepted.

        In the same transaction, stores receipts, each under its turn's fence, of turns whose chunk isn't
        refused.
        """
        ...

    async def read(self, turn_id: TurnId, after_seq: int) -> Sequence[LogChunk]:
        """The chunks with events after `after_seq`, in order."""
        ...

    async def renew(self, node_id: str, turn_ids: Iterable[TurnId], length_ms: int) -> dict[TurnId, bool]:
        """Renews a node's leases; returns the turns it still owns and whether to abort them."""
        ...

    async def note_followed(self, turn_ids: Iterable[TurnId]) -> None:
        """Somebody follows these turns now."""
        ...

    async def unfollowed(self, turn_ids: Iterable[TurnId], absent_ms: int) -> set[TurnId]:
        """Those of these turns that nobody was noted to follow for so long, by the database's clock."""
        ...

    async def request_abort(self, turn_id: TurnId) -> None:
        """Asks the node that runs the turn to abort it; takes over a turn that waits for its user."""
        ...

    async def abandoned(self, node_id: str, *, alone: bool, limit: int) -> Sequence[TurnId]:
        """Running turns whose lease has expired; if we are known to be alone, also all turns of other nodes.

        A turn whose nodes died repeatedly waits longer. Turns written by a later version are left to it.
        """
        ...

    async def adopt(self, turn_id: TurnId, lease: Lease, *, alone: bool) -> HeldTurn | None:
        """Takes over an abandoned turn; None if it has ended or another node was first.

        It counts as an attempt unless its node had released it.
        """
        ...

    async def release(self, turn_id: TurnId, fence: int) -> None:
        """Lets another node resume a turn immediately; this node no longer writes it."""
        ...

    async def reset_attempts(self, turn_id: TurnId, fence: int) -> None:
        """Resets the count of a turn's losses after progress."""
        ...

    async def pause(self, turn_id: TurnId, fence: int, requests: Collection[str]) -> Paused:
        """Makes a turn wait for its user, owned by no node. Changes nothing if one of its open requests has
        been decided or the turn is to stop.
        """
        ...

    async def waiting(self, turn_id: TurnId) -> HeldTurn | None:
        """A turn that waits for its user, with everything needed to end it; no node owns it."""
        ...

    async def adopt_waiting(self, turn_id: TurnId, lease: Lease) -> HeldTurn | None:
        """Makes a turn that waits for its user this node's own; None if it isn't waiting."""
        ...

    async def trim(self, ended_before: int) -> int:
        """Deletes the logs of turns that ended before a time; returns how many chunks."""
        ...
