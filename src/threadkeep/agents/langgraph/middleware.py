"""The tools of the agent's MCP servers and of the client, for agents of LangChain's `create_agent`."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from threadkeep.agents.errors import Denied, OutcomeUnknown, ToolFailed
from threadkeep.agents.langgraph.graph_run import GraphRun, running
from threadkeep.agents.offered import offered_tools
from threadkeep.wire.programs import ServerTool


class AddedTools(AgentMiddleware[Any, Any]):
    """Offers the model what an admin has added to the agent, and what the client brings along.

    Outside of a turn it offers nothing.
    """

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Any:
        """Asks the model with more tools."""
        if (run := running()) is None:
            return await handler(request)
        given = {getattr(it, "name", "") for it in request.tools}
        more = [_described(it) for it in await _offered(run) if it.name not in given]
        return await handler(request.override(tools=[*request.tools, *more]))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Calls a tool that isn't the agent's own."""
        call, run = request.tool_call, running()
        if run is None or request.tool is not None:
            return await handler(request)
        if call["name"] not in {it.name for it in await _offered(run)}:
            return await handler(request)
        next_ = run.next_call(run.place(), call["name"], str(call["id"]))

        async def made() -> tuple[str, bool]:
            try:
                returned = await next_.turn.call(call["name"], call["args"], call_id=call["id"])
            except (Denied, OutcomeUnknown) as exc:
                return exc.for_model, False
            except ToolFailed as exc:
                return str(exc), False
            return returned.text, returned.status == "ok"

        text, is_ok = await run.once(next_.key, made)
        return ToolMessage(
            text, name=call["name"], tool_call_id=call["id"], status="success" if is_ok else "error"
        )


async def _offered(run: GraphRun) -> list[ServerTool]:
    next_ = run.next_call(run.place(), "offered", "tools")
    return await run.once(next_.key, lambda: offered_tools(next_.turn))


def _described(tool: ServerTool) -> dict[str, Any]:
    """A tool as models are told of it."""
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": described}
