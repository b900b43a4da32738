"""What services hand to a node: how turns run, from their start or from their logs."""

from collections.abc import AsyncGenerator, Awaitable, Callable
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


class Resuming(Protocol):
    """A turn that is about to resume: takes in its log, and then says how it runs on."""

    def add(self, entry: LogEntry) -> None:
        """The next entry of the log; called in a thread if the log is long."""
        ...

    def course(self, *, is_takeover: bool) -> TurnCourse:
        """How the turn runs after what was added; `is_takeover` if its node died."""
        ...


class Resumer(Protocol):
    """Resumes turns from their logs."""

    def knows(self, model: str | None) -> bool:
        """Whether this node has a model: another one's may be saved just now, or missing in our settings."""
        ...

    @property
    def within_ms(self) -> int:
        """How long after the loss of its node a turn is resumed."""
        ...

    def resume(self, held: HeldTurn) -> Resuming:
        """A turn that this node holds, before its log is read."""
        ...
