"""Steering: a user tells a turn something while it runs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from threadkeep.domain.events import UserMessage
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock

Steering = Callable[[], Awaitable[Sequence[UserMessage]]]
"""Takes in what the user has sent since the last time; by then it is in the turn's log, and shown."""


async def nobody_steers() -> Sequence[UserMessage]:
    """For a turn that nobody can tell anything while it runs."""
    return ()


def with_user_text(request: ModelRequest, texts: Sequence[str]) -> ModelRequest:
    """A request whose last message of the user also says these, after the results of tools."""
    *before, last = request.messages or (ModelMessage("user", ()),)
    blocks = tuple(TextBlock(text) for text in texts)
    if last.role == "user":
        return replace(request, messages=(*before, ModelMessage("user", (*last.blocks, *blocks))))
    return replace(request, messages=(*before, last, ModelMessage("user", blocks)))
