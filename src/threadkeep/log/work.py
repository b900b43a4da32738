"""What a node is given to do for a turn."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.events import EventBody
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.engine.steering import Steering
from threadkeep.engine.stop import Stop

Events = Callable[[Stop, Steering], AsyncGenerator[EventBody]]
"""What happens in a turn after its start, until it is asked to stop."""


@dataclass(frozen=True, slots=True)
class Successor:
    """A turn that is ready to begin with a queued message, and what is done for it."""

    begun: BegunTurn
    message: QueuedMessage
    events: Events
    succeed: "Succeed"
    give_up: Callable[[], Awaitable[None]]
    """Called when it does not begin after all."""


Succeed = Callable[[Turn, Conversation, QueuedMessage], Awaitable[Successor]]
"""Prepares the turn of a queued message, in a conversation that another turn has just completed.

ThreadkeepError where no turn can begin: the queue is held then.
"""
