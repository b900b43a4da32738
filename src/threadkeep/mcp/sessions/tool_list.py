"""What an MCP server offers, in our terms."""

from collections.abc import Iterable

import mcp_types as mcp

from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.mcp.sessions.call_result import MOST_TOOLS
from threadkeep.ports.tools import Tool

_MOST_NAME = 128
_MOST_DESCRIPTION = 8_000


def tools_of(server: str, listed: Iterable[mcp.Tool], timeout_s: float) -> tuple[Tool, ...]:
    """The tools that a server offers; the first of each name."""
    tools: dict[str, Tool] = {}
    for tool in listed:
        if 0 < len(tool.name) <= _MOST_NAME and len(tools) < MOST_TOOLS:
            description = (tool.description or tool.title or "")[:_MOST_DESCRIPTION]
            offered = Tool(
                server, tool.name, description, tool.input_schema, timeout_s, effect=_claimed_effect(tool)
            )
            tools.setdefault(tool.name, offered)
    return tuple(tools.values())


def _claimed_effect(tool: mcp.Tool) -> ToolEffect:
    """A call's effect according to the server; the agent's owner decides whether that counts."""
    if tool.annotations is None:
        return ToolEffect.WRITE
    if tool.annotations.read_only_hint:
        return ToolEffect.READ
    return ToolEffect.IDEMPOTENT if tool.annotations.idempotent_hint else ToolEffect.WRITE
