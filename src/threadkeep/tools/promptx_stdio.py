"""PromptX over stdio, for any MCP client: `threadkeep mcp promptx`."""

import json
from collections.abc import Callable
from pathlib import Path

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from threadkeep.domain.mcp import PROMPTX
from threadkeep.ports.tools import Returned
from threadkeep.tools.notebook import FileNotebook
from threadkeep.tools.promptx import MOST_MEMORIES, TOOLS, PromptX
from threadkeep.tools.recollection import Words
from threadkeep.tools.roles import read_role


async def serve_promptx(project: Path, words: Words, clock: Callable[[], int], version: str) -> None:
    """Answers over stdin and stdout until the client disconnects; stores memories in the project."""
    notebook = FileNotebook(project, most=MOST_MEMORIES)
    promptx = PromptX(lambda role_id: read_role(role_id, project), notebook, words, clock)

    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=dict(tool.input_schema))
                for tool in TOOLS
            ]
        )

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return _result(await promptx.call(params.name, params.arguments or {}))

    server = Server(PROMPTX, version=version, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _result(returned: Returned) -> types.CallToolResult:
    value = returned.result if returned.error is None else returned.error
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=None if is_text else value,
        is_error=returned.status != "ok",
    )
