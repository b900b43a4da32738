"""Servers that others wrote: from PyPI and from npm."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mcp.npm import install
from tests.mcp.running import ENVIRONMENT, Limits, Pooled, pooled
from threadkeep.domain.mcp import StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.ports.tools import Progress

TIME = StdioServer("mcp-server-time")


@pytest.fixture(scope="module")
def node() -> Path:
    """Where servers from npm are."""
    return install()


@pytest.fixture
async def here(node: Path, tmp_path: Path) -> AsyncIterator[Pooled]:
    """A pool whose servers find node, and have nothing of the machine's own settings."""
    environment = ENVIRONMENT | {"PATH": f"{node / 'bin'}:{ENVIRONMENT['PATH']}", "HOME": str(tmp_path)}
    async with pooled(tmp_path, Limits(budget_s=60), environment=environment) as here:
        yield here


def npx(node: Path, package: str, **env: str) -> StdioServer:
    """A server that is installed, as `npx` runs it; no owner may ask for it like this."""
    secrets = {name: Secret(value) for name, value in env.items()}
    return StdioServer("env", ("npx", "--prefix", str(node), "--no", package), secrets)


async def test_time_server_tells_the_time_of_a_place(here: Pooled):
    assert await here.tools(TIME) == ["get_current_time", "convert_time"]
    returned = await here.call(
        TIME, "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Shanghai"
    )
    assert returned.status == "ok"
    assert "20:00" in json.dumps(returned.result)
    refused = await here.call(TIME, "get_current_time", timezone="Atlantis/Capital")
    assert refused.status == "error"
    assert refused.error
    assert "Atlantis" in refused.error


async def test_everything_server_is_understood(here: Pooled, node: Path):
    server = npx(node, "mcp-server-everything", SPECIAL="yes")
    assert {"echo", "get-tiny-image", "get-structured-content"} <= set(await here.tools(server))
    assert (await here.call(server, "echo", message="hello")).result == "Echo: hello"
    weather = await here.call(server, "get-structured-content", location="Chicago")
    assert set(weather.result) == {"temperature", "conditions", "humidity"}
    (logo,) = (await here.call(server, "get-tiny-image")).files
    assert (logo.file_name, logo.media_type, logo.content[:4]) == ("image-1.png", "image/png", b"\x89PNG")
    environment = json.loads((await here.call(server, "get-env")).result)
    assert environment["SPECIAL"] == "yes"
    assert not [name for name in environment if name in os.environ and name.startswith("THREADKEEP")]


async def test_everything_server_tells_of_its_progress_and_can_be_stopped(here: Pooled, node: Path):
    server = npx(node, "mcp-server-everything")
    await here.tools(server)
    long = {"duration": 60, "steps": 120}
    call = here.pool.call(here.key(server), server, "trigger-long-running-operation", long)
    assert isinstance(await anext(call), Progress)
    await call.aclose()
    calls = [here.call(server, "echo", message=str(number)) for number in range(10)]
    all_returned = await asyncio.gather(*calls)
    assert [returned.result for returned in all_returned] == [f"Echo: {number}" for number in range(10)]


async def test_memory_server_keeps_what_it_was_told_over_a_restart(here: Pooled, node: Path, tmp_path: Path):
    server = npx(node, "mcp-server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    assert (await here.call(server, "create_entities", entities=[entity])).status == "ok"
    again = replace(server, timeout_s=30)  # another configuration is another process
    returned = await here.call(again, "read_graph")
    assert "writes programs" in json.dumps(returned.result)
