"""The tool calls of a turn that has ended, whose results another run of its request takes; no tool runs."""

from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import msgspec

from threadkeep.context.call_ids import none_taken
from threadkeep.context.tool_results import TURN_ENDED
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import Notice, ToolCalled, ToolResultStored
from threadkeep.domain.tool_call import ToolCall
from threadkeep.engine.model_call import ModelReads
from threadkeep.engine.permissions import Signature
from threadkeep.engine.replay import OpenBatch
from threadkeep.engine.timer import TurnTimer
from threadkeep.ports.gateway import Block, ImageBlock, ToolResultBlock, ToolSpec, ToolUse

ResultStatus = Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]

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


class NeedsTool(ThreadkeepError):
    """The model makes a call that the original turn has no result for."""

    code = "NEEDS_TOOL"

    def __init__(self, called: ToolCalled) -> None:
        name = f"{called.server}.{called.tool_name}" if called.server else called.tool_name
        super().__init__(f"The model calls {name} with arguments that the original turn has no result for.")


class RecordedTools:
    """The tools of a rerun, which takes their results from the original turn."""

    specs: tuple[ToolSpec, ...] = ()
    """None: the rerun's request has the tools of the original's."""
    why_open = TURN_ENDED
    taken_ids = staticmethod(none_taken)

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self._recorded = RecordedCalls(calls)
        self._known = {it.name: it.call for it in calls}

    async def open(self, unknown: frozenset[Signature]) -> Sequence[Notice]:
        """Nothing has to be available."""
        return ()

    async def called(self, use: ToolUse) -> ToolCalled:
        """The event for a call."""
        return self._called(use)

    async def batch(self, open_batch: OpenBatch, timer: TurnTimer, *, room: int) -> "_RecordedBatch":
        """The results of the calls of one model call."""
        taken = [(self._called(it), self._recorded.take(it)) for it in open_batch.call.tool_uses]
        if any(recorded is None for _, recorded in taken):
            self.why_open = "The original turn has no result for this call."
        return _RecordedBatch(taken)

    def _called(self, use: ToolUse) -> ToolCalled:
        known = self._known.get(use.name)
        name, server = (known.tool_name, known.server) if known else (use.name, "")
        return ToolCalled(use.id, name, server, use.arguments, model_name=use.name)


@dataclass(frozen=True, slots=True)
class _RecordedBatch:
    """The calls of one model call, with what the original turn has of each."""

    taken: Sequence[tuple[ToolCalled, RecordedCall | None]]

    async def run(self) -> AsyncGenerator[ToolResultStored]:
        """Their results; raises NeedsTool at the first that has none."""
        for called, recorded in self.taken:
            if recorded is None:
                raise NeedsTool(called)
            yield _result(called, recorded)

    def reads(self) -> Sequence[ModelReads]:
        """What the model reads of the calls."""
        return [recorded.reads for _, recorded in self.taken if recorded is not None]


def _result(called: ToolCalled, recorded: RecordedCall) -> ToolResultStored:
    call = recorded.call
    return ToolResultStored(
        called.tool_call_id,
        called.tool_name,
        cast("ResultStatus", call.status.value),
        result=recorded.reads[0].content if call.error is None else None,
        error=call.error,
        duration_ms=call.duration_ms or 0,
    )
