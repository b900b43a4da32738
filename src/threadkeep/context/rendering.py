"""A request as rendered, in texts stored by hash: rebuilding it runs no rendering code.

Messages are stored in segments, one for each question with everything that followed it. An earlier turn's
segment is the same text in every later request, so it is stored once.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from threadkeep.ports.gateway import Block, DocumentBlock, ImageBlock, ModelMessage, TextBlock, ToolSpec

_encode = msgspec.json.Encoder().encode
_SAID = (TextBlock, DocumentBlock)

_decode = msgspec.json.Decoder(ModelMessage).decode


def line_of(message: ModelMessage) -> str:
    """A message as one line of text."""
    return _encode(message).decode()


def segments(messages: Sequence[ModelMessage], lines: Sequence[str]) -> list[str]:
    """Messages, with their lines, as texts that each begin with a question."""
    starts = [at for at, message in enumerate(messages) if _is_question(message)]
    if not starts or starts[0]:
        starts.insert(0, 0)
    return ["\n".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)]) if start < end]


def messages_of(texts: Iterable[str]) -> Iterator[ModelMessage]:
    """The messages in the segments."""
    for text in texts:
        yield from map(_decode, text.split("\n"))


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """The tools as one text."""
    described = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        for tool in tools
    ]
    return _encode(described).decode()


def tools_of(text: str) -> tuple[ToolSpec, ...]:
    """The tools that a text describes."""
    return tuple(ToolSpec(**spec) for spec in msgspec.json.decode(text))


def common_share(earlier: Sequence[str], texts: Sequence[str], hashes: Sequence[str]) -> float:
    """The share of a request (its texts and hashes) that equals the start of an earlier one (its hashes)."""
    total = sum(map(len, texts))
    common = 0
    for sha256, text, own in zip(earlier, texts, hashes, strict=False):
        if own == sha256:
            common += len(text)
            continue
        # The earlier request ends within this segment, with a question that has since got a reply.
        common += _length_of_beginning(text, sha256)
        break
    return round(common / total, 4) if total else 0.0


def _length_of_beginning(text: str, sha256: str) -> int:
    """The length of a text's first lines whose hash this is; 0 if there are none."""
    hashed, length = hashlib.sha256(), 0
    for line in text.split("\n")[:-1]:
        start = "\n" if length else ""
        hashed.update(f"{start}{line}".encode())
        length += len(start) + len(line)
        if hashed.hexdigest() == sha256:
            return length
    return 0


def _is_question(message: ModelMessage) -> bool:
    return message.role == "user" and any(map(_is_said, message.blocks))


def _is_said(block: Block) -> bool:
    """Whether a block is the user's, and not what a tool returned."""
    if isinstance(block, ImageBlock):
        return not block.tool_use_id
    return isinstance(block, _SAID)
