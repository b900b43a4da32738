"""Normalizes the ids of tool calls on arrival, so that every provider accepts them."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace

from threadkeep.domain.ids import new_uuid
from threadkeep.ports.gateway import ModelMessage, ToolUse, ToolUseBlock

# Anthropic accepts these characters, OpenAI this length.
_SENDABLE = re.compile(r"[A-Za-z0-9_-]{1,40}")


def is_sendable_id(id_: str) -> bool:
    """Whether every provider accepts the id."""
    return _SENDABLE.fullmatch(id_) is not None


TakenIds = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Which of these ids the conversation's earlier calls already use."""


async def none_taken(ids: Collection[str]) -> Collection[str]:
    """For a conversation without earlier calls."""
    return ()


class CallIds:
    """The ids of one turn's calls: every provider accepts them, and each is unique in the conversation.

    `messages` are the request's; `taken` knows the calls that the request leaves out.
    """

    def __init__(self, messages: Iterable[ModelMessage], taken: TakenIds = none_taken) -> None:
        blocks = (block for message in messages for block in message.blocks)
        self._used = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
        self._taken = taken

    async def settle(self, use: ToolUse) -> ToolUse:
        """A call on arrival: an unusable id is replaced."""
        is_free = _SENDABLE.fullmatch(use.id) and use.id not in self._used and not await self._taken([use.id])
        settled = use if is_free else replace(use, id=f"call_{new_uuid().replace('-', '')}")
        self._used.add(settled.id)
        return settled
