"""Estimates token counts, for when the provider reports none."""

import json

from threadkeep.domain.message import Usage
from threadkeep.ports.gateway import (
    FILE_BLOCKS,
    Block,
    ModelRequest,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_PER_MESSAGE = 4
_BYTES_PER_TOKEN = 4
_MOST_FRAME = 64
"""What a provider adds to a message, a tool or a file at most: roles, names, ids."""


def estimate_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes: about right for English, and conservative for Chinese."""
    return (_size(text) + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


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


def estimate_usage(request: ModelRequest, written: str) -> Usage:
    """The usage of a call whose provider reported none."""
    return Usage(estimate_request_tokens(request), estimate_tokens(written), estimated=True)


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
