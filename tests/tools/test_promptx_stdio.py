"""`threadkeep mcp promptx` as a real MCP client meets it: a process, spoken to over its standard streams."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.mcp.roles import DOMAIN, LAWYER, write
from threadkeep import __version__
from threadkeep.tools.notebook import FILE
from threadkeep.tools.promptx import TOOLS


def promptx(project: Path, mode: Literal["auto", "legacy"] = "auto") -> Client:
    """A client of a new process that works in a project."""
    environment = {"PROMPTX_PROJECT_DIR": str(project)}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "threadkeep", "mcp", "promptx"],
        env=environment,
        cwd=project.parent,
    )
    return Client(parameters, mode=mode)


async def said(client: Client, name: str, arguments: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a call failed, and what it said."""
    result = await client.call_tool(name, dict(arguments))
    (content,) = result.content
    assert isinstance(content, TextContent)
    return result.is_error, content.text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", LAWYER, f"{DOMAIN}/lawyer")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_client_of_either_protocol_finds_and_uses_the_tools(
    project: Path, mode: Literal["auto", "legacy"]
):
    async with promptx(project, mode) as client:
        assert client.server_info and (client.server_info.name, client.server_info.version) == (
            "promptx",
            __version__,
        )
        listed = (await client.list_tools()).tools
        assert [(it.name, it.description, it.input_schema) for it in listed] == [
            (it.name, it.description, dict(it.input_schema)) for it in TOOLS
        ]
        failed, text = await said(client, "promptx_action", {"role": "lawyer"})
        assert not failed
        assert "Doubt first." in text


async def test_unknown_role_is_a_real_error(project: Path):
    async with promptx(project) as client:
        failed, text = await said(client, "promptx_action", {"role": "jester"})
        assert failed
        assert "Role 'jester' not found. Available roles: assistant (Assistant), lawyer (律师)," in text


async def test_memory_lies_in_the_project_and_outlives_the_process(project: Path):
    async with promptx(project) as client:
        failed, _ = await said(client, "promptx_remember", {"content": "在杭州开茶叶店", "tags": "茶"})
        assert not failed
    assert (project / FILE).exists()
    async with promptx(project) as client:
        result = await client.call_tool("promptx_recall", {"query": "茶叶"})
        assert result.structured_content["memories"][0]["content"] == "在杭州开茶叶店"
        many = await asyncio.gather(
            *(client.call_tool("promptx_remember", {"content": f"fact {n}"}) for n in range(20))
        )
        assert not any(it.is_error for it in many)
        assert await said(client, "promptx_remember", {"content": " "}) == (
            True,
            "`content` can't be blank.",
        )
