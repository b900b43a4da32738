"""The work that a node does for a turn, as callables."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.engine.loop import TurnStep
from threadkeep.log.format import LogEntry
from threadkeep.ports.turn_log import HeldTurn
from threadkeep.runtime.running import TurnControl

Steps = Callable[[HeldTurn, TurnControl], AsyncGenerator[TurnStep]]
"""The steps of a new turn, after its start."""

ResumedSteps = Callable[[HeldTurn, Sequence[LogEntry], TurnControl, bool], AsyncGenerator[TurnStep]]
"""The steps of a turn that continues from its log; the flag says whether its node died."""


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn that is ready to begin with a queued message, and its steps."""

    begun: BegunTurn
    message: QueuedMessage
    steps: Steps
    prepare_next: "PrepareNextTurn"
    by_admin: bool
    give_up: Callable[[], Awaitable[None]]
    """Called if it doesn't begin after all."""


PrepareNextTurn = Callable[[Turn, Conversation, QueuedMessage], Awaitable[PreparedTurn]]
"""Prepares the turn of a queued message, in a conversation whose previous turn has just completed.

Raises ThreadkeepError if no turn can begin; then the queue is held.
"""

PrepareNextOf = Callable[[HeldTurn, Sequence[LogEntry]], PrepareNextTurn]
"""How the next turn follows one that continued from its log."""
