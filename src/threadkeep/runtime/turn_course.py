"""What services hand to a node: how turns run, from their start or from their logs."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.engine.loop import TurnStep
from threadkeep.log.format import LogEntry
from threadkeep.runtime.control import TurnControl
from threadkeep.storage.turn_log import HeldTurn


async def _give_nothing_back() -> None:
    """For turns that reserved nothing."""


@dataclass(frozen=True, slots=True)
class TurnCourse:
    """How a turn runs, and what follows it."""

    steps: Callable[[HeldTurn, TurnControl], AsyncGenerator[TurnStep]]
    """What it does from here on."""
    prepare_next: "PrepareNextTurn | None" = None
    """Prepares the turn of a message that is queued behind this one."""
    by_admin: bool = False
    """Whether its user is an admin; if it resumes, it keeps their rights."""
    give_back: Callable[[], Awaitable[None]] = _give_nothing_back
    """Gives back what it reserved, if it doesn't begin after all."""


PrepareNextTurn = Callable[[Turn, Conversation, QueuedMessage], Awaitable[tuple[BegunTurn, TurnCourse]]]
"""Prepares the turn of a queued message, in a conversation whose previous turn has just completed.

Raises ThreadkeepError if no turn can begin; then the queue is held.
"""


class Resumer(Protocol):
    """Resumes turns from their logs."""

    def knows(self, model: str | None) -> bool:
        """Whether this node has a model: another one's may be saved just now, or missing in our settings."""
        ...

    @property
    def within_ms(self) -> int:
        """How long after the loss of its node a turn is resumed."""
        ...

    def resume(self, held: HeldTurn, entries: Sequence[LogEntry], *, is_takeover: bool) -> TurnCourse:
        """How a turn runs after the entries of its log; `is_takeover` if its node died."""
        ...
