"""Tools that the turn offers besides the agent's own, as tools of the SDK."""

import json
from collections.abc import Container, Iterable, Iterator
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from threadkeep.agents.errors import Denied, OutcomeUnknown, ToolFailed
from threadkeep.agents.turn import Turn
from threadkeep.wire.programs import ServerTool


def as_sdk_tools(turn: Turn, offered: Iterable[ServerTool], taken: Container[str]) -> Iterator[FunctionTool]:
    """What is offered, but for names that the agent's own tools have."""
    for tool in offered:
        if tool.name not in taken:
            yield _as_tool(turn, tool)


def _as_tool(turn: Turn, tool: ServerTool) -> FunctionTool:
    async def call(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
            return (await turn.call(tool.name, given, call_id=context.tool_call_id)).text
        except (Denied, OutcomeUnknown) as exc:
            return exc.for_model
        except (ToolFailed, ValueError, TypeError) as exc:
            return f"The call failed. {exc}"

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=call,
        strict_json_schema=False,
    )
