"""Estimates token counts, for when the provider reports none."""

import json
from dataclasses import dataclass, field

from threadkeep.domain.message import Usage
from threadkeep.ports.gateway import (
    FILE_BLOCKS,
    Block,
    ModelRequest,
    ThinkingBlock,
    ToolResultBlock,
    ToolUse,
    ToolUseBlock,
)

_PER_MESSAGE = 4
_BYTES_PER_TOKEN = 4
_MOST_FRAME = 64
"""What a provider adds to a message, a tool or a file at most: roles, names, ids."""


def estimate_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes: about right for English, and conservative for Chinese."""
    return _tokens_of(_size(text))


def beginning_of(text: str, tokens: int) -> str:
    """The beginning of a text that takes at most this many tokens."""
    size = tokens * _BYTES_PER_TOKEN
    if text.isascii():
        return text[:size]
    # A character takes at least a byte.
    return text[:size].encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def estimate_request_tokens(request: ModelRequest) -> int:
    """The cost of a request before the reply."""
    texts = (request.system, *(f"{tool.name}{tool.description}{tool.input_schema}" for tool in request.tools))
    blocks = (block for message in request.messages for block in message.blocks)
    return (
        sum(map(estimate_tokens, texts))
        + sum(map(_block_tokens, blocks))
        + _PER_MESSAGE * len(request.messages)
    )


@dataclass(slots=True)
class Written:
    """What a model has written so far, whether or not anybody sees it."""

    texts: list[str] = field(default_factory=list[str])
    """Its text and its thoughts."""
    unshown: int = 0
    """How many bytes it wrote of tool calls, which nobody sees in pieces, and of hidden thoughts."""
    uses: list[ToolUse] = field(default_factory=list[ToolUse])
    """Its complete tool calls; not every provider sends them in pieces."""

    def __bool__(self) -> bool:
        return bool(self.texts or self.unshown or self.uses)

    @property
    def tokens(self) -> int:
        """An estimate of how many tokens that is."""
        called = sum(_size(f"{use.name}{use.arguments}") for use in self.uses)
        return _tokens_of(_size("".join(self.texts)) + max(called, self.unshown))


def estimate_usage(request: ModelRequest, written: Written) -> Usage:
    """The usage of a call whose provider reported none."""
    return Usage(estimate_request_tokens(request), written.tokens, estimated=True)


def most_request_tokens(request: ModelRequest) -> int:
    """What a request can cost at most before the reply: no tokenizer makes more tokens than bytes."""
    specs = (f"{tool.name}{tool.description}{json.dumps(tool.input_schema)}" for tool in request.tools)
    blocks = (block for message in request.messages for block in message.blocks)
    framed = len(request.messages) + len(request.tools) + 1
    return (
        sum(map(_size, (request.system, *specs)))
        + sum(map(_most_block_tokens, blocks))
        + _MOST_FRAME * framed
    )


def _most_block_tokens(block: Block) -> int:
    if isinstance(block, ToolResultBlock):
        return _size(block.content) + _MOST_FRAME
    if isinstance(block, ToolUseBlock):
        return _size(f"{block.name}{json.dumps(block.arguments)}") + _MOST_FRAME
    if isinstance(block, FILE_BLOCKS):
        return block.tokens + _MOST_FRAME
    if isinstance(block, ThinkingBlock):
        return _size(block.text) + _size(block.signature)
    return _size(block.text)


def _tokens_of(size: int) -> int:
    return (size + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _block_tokens(block: Block) -> int:
    if isinstance(block, ToolResultBlock):
        return estimate_tokens(block.content)
    if isinstance(block, ToolUseBlock):
        return estimate_tokens(f"{block.name}{block.arguments}")
    if isinstance(block, FILE_BLOCKS):
        return block.tokens
    return estimate_tokens(block.text)
