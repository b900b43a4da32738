"""One call of the model: what it has said and asked for so far, in the order in which it came."""

from collections.abc import Sequence

from threadkeep.domain.text import is_blank
from threadkeep.ports.gateway import (
    Block,
    ModelMessage,
    ModelUsage,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseBlock,
)


class ModelCall:
    """Collects an answer piece by piece; `signed_by` is who signs its reasoning."""

    def __init__(self, signed_by: str) -> None:
        self.usage: ModelUsage | None = None
        self.stop_reason = "end_turn"
        self._signed_by = signed_by
        self._blocks: list[TextBlock | ThinkingBlock | ToolUse] = []
        self._text: list[str] = []  # of the block under way
        self._thought: list[str] = []
        self._written: list[str] = []

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The tools that the model asks for."""
        return [block for block in self._blocks if isinstance(block, ToolUse)]

    @property
    def text(self) -> str:
        """All that was said."""
        blocks = (*self._blocks, *self._open_text())
        return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))

    @property
    def written(self) -> str:
        """All that was said and thought."""
        return "".join(self._written)

    def add_text(self, text: str) -> None:
        """A piece of the reply."""
        self._thought.clear()  # nobody signed it, so it does not go back
        self._text.append(text)
        self._written.append(text)

    def add_thought(self, text: str) -> None:
        """A piece of the reasoning."""
        self._close_text()
        self._thought.append(text)
        self._written.append(text)

    def end_thought(self, signature: str) -> None:
        """A block of reasoning is complete; without a signature it does not go back."""
        self._close_text()
        if signature:
            self._blocks.append(ThinkingBlock("".join(self._thought), signature, self._signed_by))
        self._thought.clear()

    def add_tool_use(self, use: ToolUse) -> None:
        """The model asks for a tool."""
        self._close_text()
        self._thought.clear()
        self._blocks.append(use)

    def message(self) -> ModelMessage:
        """The call as a message of the history, its blocks in the order in which they came."""
        return ModelMessage("assistant", tuple(map(_block, (*self._blocks, *self._open_text()))))

    def _open_text(self) -> Sequence[TextBlock]:
        text = "".join(self._text)
        return () if is_blank(text) else (TextBlock(text),)

    def _close_text(self) -> None:
        self._blocks.extend(self._open_text())
        self._text.clear()


def _block(block: TextBlock | ThinkingBlock | ToolUse) -> Block:
    return ToolUseBlock(block.id, block.name, block.arguments) if isinstance(block, ToolUse) else block
