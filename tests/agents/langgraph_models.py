"""Models of LangChain whose replies depend on the last message alone."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field

Call = tuple[str, str]
"""A tool's name, and its arguments as JSON."""


class Scripted(BaseChatModel):
    """Replies what a function says: texts, and calls of tools."""

    answer: Callable[[list[BaseMessage]], list[str | Call]]
    calls: list[str] = Field(default_factory=list[str])
    """The last message of each call."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """The same model: it knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return generate_from_stream(self._stream(messages))

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        self.calls.append(str(messages[-1].content))
        asked = sum(isinstance(it, HumanMessage) for it in messages)
        for number, piece in enumerate(self.answer(messages)):
            if isinstance(piece, str):
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
            else:
                name, arguments = piece
                chunk = tool_call_chunk(
                    name=name, args=arguments, id=f"{name}-{asked}-{number}", index=number
                )
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))
        usage = UsageMetadata(input_tokens=10, output_tokens=5, total_tokens=15)
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk


def echo(messages: list[BaseMessage]) -> list[str | Call]:
    """Repeats the last message in two pieces."""
    return ["You said ", f"{messages[-1].content}."]
