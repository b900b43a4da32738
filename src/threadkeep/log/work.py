"""What a node is given to do for a turn."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.engine.loop import TurnStep
from threadkeep.log.format import LogEntry
from threadkeep.log.running import TurnControl
from threadkeep.ports.turn_log import HeldTurn

Steps = Callable[[HeldTurn, TurnControl], AsyncGenerator[TurnStep]]
"""What happens in a turn that begins, after its start."""

ContinuedSteps = Callable[[HeldTurn, Sequence[LogEntry], TurnControl, bool], AsyncGenerator[TurnStep]]
"""What happens in a turn that goes on from its log; whether it was taken over from a node that is gone."""


@dataclass(frozen=True, slots=True)
class Successor:
    """A turn that is ready to begin with a queued message, and what is done for it."""

    begun: BegunTurn
    message: QueuedMessage
    steps: Steps
    succeed: "Succeed"
    by_admin: bool
    give_up: Callable[[], Awaitable[None]]
    """Called when it does not begin after all."""


Succeed = Callable[[Turn, Conversation, QueuedMessage], Awaitable[Successor]]
"""Prepares the turn of a queued message, in a conversation that another turn has just completed.

ThreadkeepError where no turn can begin: the queue is held then.
"""

Succession = Callable[[HeldTurn, Sequence[LogEntry]], Succeed]
"""How a turn that goes on from its log is succeeded."""
