"""A PromptX that is not ours, as the real one behaves: it takes PWD for its project and HOME for itself.

python -m tests.mcp.other_promptx
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NAMES = ("promptx_init", "promptx_hello", "promptx_action", "promptx_recall", "promptx_remember")
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


class OtherPromptX:
    """Its tools, which answer in prose whatever happens."""

    def __init__(self) -> None:
        self.project: str | None = None

    async def list_tools(self, _: object, __: object) -> types.ListToolsResult:
        """More tools than anybody needs."""
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=ANYTHING) for name in NAMES])

    async def call_tool(self, _: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Prose."""
        text = self._said(params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(text=text)])

    def _said(self, name: str, arguments: dict[str, str]) -> str:
        memory = Path(os.environ["PWD"], ".promptx", "memory.txt")
        match name:
            case "promptx_init":
                self.project = arguments["workingDirectory"]
                return "initialised"
            case "promptx_action":
                role = arguments["role"]
                warned = (
                    "" if self.project == os.environ["PWD"] == str(Path.cwd()) else "🛑 not initialised\n"
                )
                found = Path(os.environ["PWD"], f".promptx/resource/domain/{role}/{role}.role.md")
                return warned + (found.read_text() if found.exists() else f'❌ 角色 "{role}" 不存在！')
            case "promptx_remember":
                with memory.open("a") as file:
                    file.write(arguments["content"] + "\n")
                Path(os.environ["HOME"], ".promptx").write_text("global")
                return "remembered"
            case _:
                return memory.read_text() if memory.exists() else "nothing"


async def main() -> None:
    """Answers until the client goes."""
    other = OtherPromptX()
    server = Server("other", on_list_tools=other.list_tools, on_call_tool=other.call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
