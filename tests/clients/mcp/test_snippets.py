"""What docs/clients.md tells people to write for MCP clients works, as far as it is ours."""

import pytest

from tests.clients.conftest import new_agent
from tests.clients.mcp import configuration
from tests.clients.mcp.client import ERAS, connected, new_key
from tests.conftest import ONLY_SQLITE
from tests.docs.pages import DOCS, blocks
from tests.talking import Talk

FILES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "~/.codex/config.toml")


@ONLY_SQLITE
@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("name", FILES)
async def test_configuration_connects(talk: Talk, name: str, era: str):
    await new_agent(talk)
    (text,) = (it.code for it in blocks(DOCS / "clients.md") if it.file == name)
    key = (await new_key(talk, "chat"))["key"]
    server = configuration.read(text, key)
    assert server.url == "http://127.0.0.1:8710/mcp"
    assert server.headers == {"Authorization": f"Bearer {key}"}
    async with connected(talk.url, server.headers, era) as client:
        agents = (await client.call_tool("list_agents", {})).structured_content["agents"]
        assert "Advisor" in {it["name"] for it in agents}
