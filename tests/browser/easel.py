"""A small MCP server whose drawing is ready when a test says so: `python easel.py`."""

import asyncio
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

easel = MCPServer("easel")


class Frame(BaseModel):
    """What one asks of whoever wants a frame."""

    name: str = Field(title="Your name", description="As it should stand below", min_length=2)
    width: int = Field(default=30, ge=10, le=90)
    gold: bool = Field(default=False, title="Gilded")


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


@easel.tool()
async def frame(context: Context) -> str:
    """Asks how the frame should be, and makes it."""
    asked = await context.elicit("Which frame?", Frame)
    return asked.data.model_dump_json() if asked.action == "accept" else asked.action


@easel.tool()
async def sell(context: Context) -> str:
    """Sends the user to where they pay."""
    return (await context.elicit_url("Please pay.", "https://pay.example.org/frames/7", "7")).action


if __name__ == "__main__":
    easel.run()
