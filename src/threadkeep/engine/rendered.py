"""A request as it was rendered, in texts kept by their content: building it again runs no rendering code.

The messages are kept in segments, one for each question with all that followed it. An earlier turn's segment
is the same text in every later request, so it is kept once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, assert_never

import msgspec

from threadkeep.domain.payload import content_hash
from threadkeep.ports.gateway import (
    Block,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
)

_encode = msgspec.json.Encoder().encode


class _Line(msgspec.Struct):
    role: Literal["user", "assistant"]
    blocks: list[dict[str, Any]]


_decode_line = msgspec.json.Decoder(_Line).decode


def segments(messages: Sequence[ModelMessage]) -> list[str]:
    """The messages as texts: one a line, in segments that each begin with a question."""
    texts: list[str] = []
    lines: list[str] = []
    for message in messages:
        if lines and _is_question(message):
            texts.append("\n".join(lines))
            lines = []
        lines.append(_line(message))
    return [*texts, "\n".join(lines)] if lines else texts


def messages_of(texts: Iterable[str]) -> Iterator[ModelMessage]:
    """The messages of segments."""
    for text in texts:
        for line in text.split("\n"):
            read = _decode_line(line)
            yield ModelMessage(read.role, tuple(map(_block, read.blocks)))


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """The tools as one text."""
    described = [
        {"name": it.name, "description": it.description, "input_schema": dict(it.input_schema)}
        for it in tools
    ]
    return _encode(described).decode()


def tools_of(text: str) -> tuple[ToolSpec, ...]:
    """The tools that a text describes."""
    return tuple(ToolSpec(**spec) for spec in msgspec.json.decode(text))


def common_share(before: Sequence[str], texts: Sequence[str]) -> float:
    """How much of a request, by its texts, equals the start of an earlier one, by the hashes of its texts."""
    total = sum(map(len, texts))
    common = 0
    for sha256, text in zip(before, texts, strict=False):
        if text_hash(text) == sha256:
            common += len(text)
            continue
        # An earlier request ends in the middle of this segment: with the question that is answered since.
        common += next((len(it) for it in _beginnings(text) if text_hash(it) == sha256), 0)
        break
    return round(common / total, 4) if total else 0.0


def text_hash(text: str) -> str:
    """The name of a text that is kept by its content."""
    return content_hash(text.encode())


def _beginnings(text: str) -> Iterator[str]:
    at = text.find("\n")
    while at != -1:
        yield text[:at]
        at = text.find("\n", at + 1)


def _is_question(message: ModelMessage) -> bool:
    return message.role == "user" and any(isinstance(block, TextBlock) for block in message.blocks)


def _line(message: ModelMessage) -> str:
    return _encode({"role": message.role, "blocks": list(map(_as_json, message.blocks))}).decode()


def _as_json(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock(text):
            return {"text": text}
        case ToolUseBlock(id_, name, arguments):
            return {"use": id_, "name": name, "arguments": dict(arguments)}
        case ToolResultBlock(id_, content, is_error):
            return {"result": id_, "content": content, "is_error": is_error}
        case ThinkingBlock():
            raise TypeError("A turn begins without signed reasoning.")
        case _ as never:
            assert_never(never)


def _block(block: Mapping[str, Any]) -> Block:
    if "text" in block:
        return TextBlock(block["text"])
    if "use" in block:
        return ToolUseBlock(block["use"], block["name"], block["arguments"])
    return ToolResultBlock(block["result"], block["content"], block["is_error"])
