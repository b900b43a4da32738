"""The tool calls of a turn that has ended, as another run of its request can take their results; pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from threadkeep.domain.tool_call import ToolCall
from threadkeep.engine.model_call import ModelReads
from threadkeep.ports.gateway import Block, ImageBlock, ToolResultBlock, ToolUse

CallKey = tuple[str, str]
"""The model's name for a tool, and the arguments of a call as canonical JSON."""


def call_key(name: str, arguments: Mapping[str, Any]) -> CallKey:
    """Equal for calls of the same tool with the same arguments, however a model writes them."""
    return name, msgspec.json.encode(_canonical(arguments), order="deterministic").decode()


def _canonical(value: Any) -> Any:
    """A JSON value in which equal numbers are equal texts: 1.0 is 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _canonical(it) for name, it in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_canonical(it) for it in cast("list[Any]", value)]
        case _:
            return value


def in_both(own: Iterable[CallKey], others: Iterable[CallKey]) -> list[bool]:
    """For each call of one run, whether the other run made it, too, as often."""
    left = Counter(others)
    found: list[bool] = []
    for key in own:
        found.append(left[key] > 0)
        left[key] -= found[-1]
    return found


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call with the model's own arguments, and what the model read when it returned."""

    call: ToolCall
    name: str
    """The model's name for the tool."""
    arguments: Mapping[str, Any]
    reads: ModelReads


class RecordedCalls:
    """The recorded calls that have not been repeated yet."""

    def __init__(self, calls: Iterable[RecordedCall]) -> None:
        self._left: dict[CallKey, deque[RecordedCall]] = defaultdict(deque)
        for it in calls:
            self._left[call_key(it.name, it.arguments)].append(it)

    def take(self, use: ToolUse) -> RecordedCall | None:
        """The first of the same calls that was not taken yet, with the id of the new one; None if none is
        left.
        """
        left = self._left.get(call_key(use.name, use.arguments))
        if not left:
            return None
        it = left.popleft()
        result, *images = it.reads
        reads = (
            ToolResultBlock(use.id, result.content, result.is_error),
            *(_of_call(block, use.id) for block in images),
        )
        return replace(it, reads=reads)


def _of_call(block: Block, id_: str) -> Block:
    return msgspec.structs.replace(block, tool_use_id=id_) if isinstance(block, ImageBlock) else block
