"""How many tokens a text is, roughly: where the provider does not say."""

from threadkeep.ports.gateway import (
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
    texts = [request.system, *(f"{tool.name}{tool.description}{tool.input_schema}" for tool in request.tools)]
    for message in request.messages:
        for block in message.blocks:
            match block:
                case TextBlock(text) | ThinkingBlock(text):
                    texts.append(text)
                case ToolUseBlock(_, name, arguments):
                    texts.append(f"{name}{arguments}")
                case ToolResultBlock(_, content):
                    texts.append(content)
    return sum(map(estimate_tokens, texts)) + _PER_MESSAGE * len(request.messages)
