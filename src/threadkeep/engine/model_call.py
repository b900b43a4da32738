"""One model call: its text and tool calls so far, in order of arrival."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from threadkeep.context.estimates import Written, estimate_usage
from threadkeep.domain.events import EventBody, Notice, Text, Thought, ToolCalled
from threadkeep.domain.message import Usage
from threadkeep.domain.text import is_blank, storable
from threadkeep.engine.journal import CallFinished, OutputRefused, UseNoted
from threadkeep.engine.spending import ModelSpending
from threadkeep.ports.gateway import (
    Block,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    Retrying,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolUse,
    ToolUseBlock,
    UnshownDelta,
)

ModelReads = tuple[ToolResultBlock, *tuple[Block, ...]]
"""What the model reads of a call that has ended: its result and its images."""


class ModelCall:
    """Collects a response chunk by chunk; `signed_by` is who signs its reasoning."""

    def __init__(self, signed_by: str) -> None:
        self.usage: ModelUsage | None = None
        self.stop_reason = "end_turn"
        self._signed_by = signed_by
        self._blocks: list[TextBlock | ThinkingBlock | ToolUse] = []
        self._text: list[str] = []  # of the current block
        self._thought: list[str] = []
        self.written = Written()
        self.is_complete = False
        """Whether the model has stopped by itself."""
        self.has_spoken = False
        """Whether it has text that one can see."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a reply has arrived."""
        return not self.written and not self._blocks and self.usage is None

    def add_text(self, text: str) -> None:
        """A chunk of the reply."""
        self.has_spoken = self.has_spoken or not is_blank(text)
        self._thought.clear()  # unsigned, so it is not sent back
        self._text.append(text)
        self.written.texts.append(text)

    def add_thought(self, text: str) -> None:
        """A chunk of the reasoning."""
        self._close_text()
        self._thought.append(text)
        self.written.texts.append(text)

    def end_thought(self, signature: str) -> None:
        """A block of reasoning is complete; without a signature it is not sent back."""
        self._close_text()
        if signature:
            self._blocks.append(ThinkingBlock("".join(self._thought), signature, self._signed_by))
        self._thought.clear()

    def add_tool_use(self, use: ToolUse) -> None:
        """The model calls a tool."""
        self._close_text()
        self._thought.clear()
        self._blocks.append(use)
        self.written.uses.append(use)

    def spent(self, request: ModelRequest, model: str, spending: ModelSpending) -> Usage:
        """Its usage so far; estimated if the provider reported none or implausible numbers."""
        usage = self.usage.as_usage() if self.usage else estimate_usage(request, self.written)
        if self.usage is None and not self.is_complete:
            usage = spending.cut_off(usage)
        return spending.priced(model, usage)

    def finished(self, iteration: int) -> "FinishedCall":
        """The complete call, its blocks in order of arrival."""
        return FinishedCall(iteration, self.stop_reason, (*self._blocks, *self._open_text()))

    def _open_text(self) -> Sequence[TextBlock]:
        text = "".join(self._text)
        return () if is_blank(text) else (TextBlock(text),)

    def _close_text(self) -> None:
        self._blocks.extend(self._open_text())
        self._text.clear()


CallTool = Callable[[ToolUse], Awaitable[tuple[ToolUse, ToolCalled | None]]]
"""Gives a tool call an id of its own, and finds its tool; None where whoever asked makes the call later."""


async def reply_events(
    stream: AsyncGenerator[ModelEvent], call: ModelCall, call_tool: CallTool
) -> AsyncGenerator[EventBody]:
    """The events of a reply as it arrives; collects it in `call`."""
    try:
        async for event in stream:
            match event:
                case TextDelta(text):
                    text = storable(text)
                    call.add_text(text)
                    yield Text(text)
                case ThoughtDelta(text):
                    text = storable(text)
                    call.add_thought(text)
                    yield Thought(text)
                case ThoughtSigned(signature):
                    call.end_thought(signature)
                case ToolUse():
                    use, called = await call_tool(event)
                    call.add_tool_use(use)
                    if called is not None:
                        yield called
                case UnshownDelta(size):
                    call.written.unshown += size
                case ModelUsage():
                    call.usage = event.plausible() or call.usage
                case Retrying():
                    yield Notice("MODEL_RETRIED", event.message)
                case ModelStopped(reason):
                    call.stop_reason, call.is_complete = reason, True
    finally:
        await stream.aclose()


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A complete model call: its text and its tool calls."""

    iteration: int
    stop_reason: str
    blocks: tuple[TextBlock | ThinkingBlock | ToolUse, ...]

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The tools that the model calls."""
        return [block for block in self.blocks if isinstance(block, ToolUse)]

    def entry(self) -> CallFinished:
        """The call in the journal; without tool calls, none of its blocks is sent back."""
        uses = bool(self.tool_uses)
        return CallFinished(self.iteration, self.stop_reason, tuple(map(_noted, self.blocks)) if uses else ())

    def refused(self, problem: str) -> OutputRefused:
        """The call in the journal if its reply isn't what was asked for."""
        said = (it for it in self.blocks if not isinstance(it, ToolUse))
        return OutputRefused(self.iteration, problem, tuple(said))

    def reply(self) -> tuple[ModelMessage, ...]:
        """A call that asks for no tools as a message of the history; none if it is empty."""
        return (ModelMessage("assistant", tuple(map(_block, self.blocks))),) if self.blocks else ()

    def with_results(
        self, reads: Sequence[ModelReads], *, as_blocks: bool
    ) -> tuple[ModelMessage, ModelMessage]:
        """The call and the results of its tools as messages of the history.

        Providers refuse tool blocks in requests without tools; then both are text.
        """
        if as_blocks:
            return ModelMessage("assistant", tuple(map(_block, self.blocks))), ModelMessage(
                "user", (*(block for block, *_ in reads), *(it for _, *images in reads for it in images))
            )
        said = "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))
        names = ", ".join(use.name for use in self.tool_uses)
        asked = f"(Asks for tools: {names}.)" if is_blank(said) else said
        heard = "\n".join(block.content for block, *_ in reads)
        return ModelMessage("assistant", (TextBlock(asked),)), ModelMessage("user", (TextBlock(heard),))


def with_user_text(messages: Sequence[ModelMessage], text: str) -> tuple[ModelMessage, ...]:
    """Adds the user's text to a history: to their last message if that ends it, because roles alternate."""
    *earlier, last = messages
    if last.role != "user":
        return (*messages, ModelMessage("user", (TextBlock(text),)))
    return (*earlier, ModelMessage("user", (*last.blocks, TextBlock(text))))


def _noted(block: TextBlock | ThinkingBlock | ToolUse) -> TextBlock | ThinkingBlock | UseNoted:
    return UseNoted(block.id, block.problem) if isinstance(block, ToolUse) else block


def _block(block: TextBlock | ThinkingBlock | ToolUse) -> Block:
    return ToolUseBlock(block.id, block.name, block.arguments) if isinstance(block, ToolUse) else block
