"""Steering: a user tells a turn something while it runs."""

from collections.abc import Awaitable, Callable, Sequence

from threadkeep.domain.events import UserMessage

Steering = Callable[[], Awaitable[Sequence[UserMessage]]]
"""Takes in what the user has sent since the last time; by then it is in the turn's log, and shown."""


async def nobody_steers() -> Sequence[UserMessage]:
    """For a turn that nobody can tell anything while it runs."""
    return ()
