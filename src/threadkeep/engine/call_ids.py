"""Settles the ids of tool calls when they arrive, so that every provider takes them back."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace

from threadkeep.domain.ids import new_uuid
from threadkeep.ports.gateway import ModelMessage, ToolUse, ToolUseBlock

# Anthropic takes these characters, OpenAI this length.
_SENDABLE = re.compile(r"[A-Za-z0-9_-]{1,40}")


def is_sendable_id(id_: str) -> bool:
    """Whether every provider takes the id."""
    return _SENDABLE.fullmatch(id_) is not None


TakenIds = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Which of these ids earlier calls of the conversation have."""


async def none_taken(ids: Collection[str]) -> Collection[str]:
    """For a conversation without earlier calls."""
    return ()


class CallIds:
    """The ids of one turn's calls: each is one that every provider takes, and unique in the conversation.

    `messages` are those of the request; `taken` knows the calls that the request leaves out.
    """

    def __init__(self, messages: Iterable[ModelMessage], taken: TakenIds = none_taken) -> None:
        blocks = (block for message in messages for block in message.blocks)
        self._used = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
        self._taken = taken

    async def settle(self, uses: Sequence[ToolUse]) -> Sequence[ToolUse]:
        """The calls of one answer, in order: an id that cannot be kept is replaced by one of ours."""
        wanted = {use.id for use in uses if _SENDABLE.fullmatch(use.id)} - self._used
        free = wanted - set(await self._taken(wanted)) if wanted else set[str]()
        return [self._settle(use, free) for use in uses]

    def _settle(self, use: ToolUse, free: set[str]) -> ToolUse:
        settled = use if use.id in free else replace(use, id=f"call_{new_uuid().replace('-', '')}")
        free.discard(settled.id)
        self._used.add(settled.id)
        return settled
