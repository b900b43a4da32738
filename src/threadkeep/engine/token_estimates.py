"""How many tokens a text is, roughly: where the provider does not say."""

from threadkeep.ports.gateway import (
    Block,
    ModelRequest,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_PER_MESSAGE = 4


def estimate_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes: about right for English, and on the safe side for Chinese."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def estimate_request_tokens(request: ModelRequest) -> int:
    """What a request costs before the reply."""
    texts = (request.system, *(f"{tool.name}{tool.description}{tool.input_schema}" for tool in request.tools))
    blocks = (block for message in request.messages for block in message.blocks)
    return (
        sum(map(estimate_tokens, texts))
        + sum(map(_block_tokens, blocks))
        + _PER_MESSAGE * len(request.messages)
    )


def _block_tokens(block: Block) -> int:
    match block:
        case TextBlock(text) | ThinkingBlock(text) | ToolResultBlock(content=text):
            return estimate_tokens(text)
        case ToolUseBlock(_, name, arguments):
            return estimate_tokens(f"{name}{arguments}")
