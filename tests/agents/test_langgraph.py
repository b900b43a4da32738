"""LangGraph's graphs and LangChain's agents behind a durable turn."""

from collections.abc import AsyncIterator
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import tool

from threadkeep.agents.langgraph import durable
from threadkeep.testing import crash_everywhere, run_agent


class ByHistory(BaseChatModel):
    """Calls the tool first, then says what it returned."""

    @property
    def _llm_type(self) -> str:
        return "by-history"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            for text in ("It said: ", str(last.content)):
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        else:
            asked = sum(isinstance(it, HumanMessage) for it in messages)
            yield ChatGenerationChunk(message=AIMessageChunk(content="I look. "))
            chunk = tool_call_chunk(name="refund", args='{"order": 7}', id=f"c{asked}", index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))


@tool
async def refund(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


refunds = durable(create_agent(ByHistory(), [refund], name="refunds"))


async def refunded(arguments: dict[str, Any]) -> str:
    return f"refunded {arguments['order']}"


async def test_an_agent_of_create_agent_replies_and_calls_its_tool_once() -> None:
    run = await run_agent(refunds, "Refund order 7", steps={"refund": refunded})
    assert run.status == "COMPLETED", run
    assert run.text == "I look. \n\nIt said: refunded 7"
    assert run.steps["model"].count == 2


async def test_a_crash_is_not_felt() -> None:
    some = {
        "after save (2)",
        "after text",
        "before save (4)",
        "after dispatched",
        "after save (6)",
        "before the end",
    }
    report = await crash_everywhere(refunds, "Refund order 7", steps={"refund": refunded}, only=some)
    report.check()
