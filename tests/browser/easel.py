"""A small MCP server whose drawing is ready when a test says so: `python easel.py`."""

import asyncio
from typing import Any

from mcp.server import MCPServer

easel = MCPServer("easel")


@easel.tool()
async def draw(port: int | None = None) -> dict[str, Any]:
    """Draws a chart, once whoever listens at this port of the machine has hung up."""
    if port is not None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.read()
        writer.close()
    return {"chart_data": {"title": "Drawing", "series": [{"data": [1, 2]}]}}


@easel.tool()
def note(text: str) -> str:
    """Writes down a text."""
    return text


if __name__ == "__main__":
    easel.run()
