"""Steering: messages that join a running turn."""

from collections.abc import Awaitable, Callable, Sequence

from threadkeep.domain.events import UserMessage

Steering = Callable[[], Awaitable[Sequence[UserMessage]]]
"""Returns the messages sent since the last call; by then, they are stored in the turn's log and shown."""


async def nobody_steers() -> Sequence[UserMessage]:
    """For turns that can't be steered."""
    return ()
