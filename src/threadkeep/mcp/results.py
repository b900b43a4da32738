"""What an MCP server offers, in our words."""

from collections.abc import Iterable

import mcp_types as mcp

from threadkeep.mcp.digest import MOST_TOOLS
from threadkeep.ports.tools import Tool

_MOST_NAME = 128
_MOST_DESCRIPTION = 8_000


def tools_of(server: str, listed: Iterable[mcp.Tool], timeout_s: float) -> tuple[Tool, ...]:
    """The tools that a server offers; of one name only the first."""
    tools: dict[str, Tool] = {}
    for tool in listed:
        if 0 < len(tool.name) <= _MOST_NAME and len(tools) < MOST_TOOLS:
            description = (tool.description or tool.title or "")[:_MOST_DESCRIPTION]
            tools.setdefault(tool.name, Tool(server, tool.name, description, tool.input_schema, timeout_s))
    return tuple(tools.values())
