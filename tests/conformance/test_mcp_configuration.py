"""Seed 002, CONV-008.1: the MCP servers of a domain are configured by its user."""

from typing import Any

import httpx
import pytest

from tests.conftest import Api
from threadkeep.domain.ids import AgentId

WEB_SEARCH: dict[str, Any] = {
    "command": "npx",
    "args": ["@anthropic/mcp-server-web-search"],
    "env": {"SEARCH_API_KEY": "xxx"},
}


@pytest.fixture
def user(api: Api) -> httpx.AsyncClient:
    """A user who may add programs: with no sign-in everyone, with one those with the admin role."""
    return api.as_user("alice", admin=True)


@pytest.fixture
async def domain(user: httpx.AsyncClient) -> str:
    """A domain to talk to."""
    response = await user.post("/api/domains", json={"name": "法律顾问"})
    assert response.status_code == 201
    return f"/api/domains/{response.json()['id']}"


async def save(user: httpx.AsyncClient, domain: str, **servers: Any) -> httpx.Response:
    return await user.patch(domain, json={"settings": {"mcpServers": servers}})


async def state(user: httpx.AsyncClient, domain: str) -> tuple[Any, Any]:
    read = (await user.get(domain)).json()
    return read["settings"]["mcpServers"], read["mcpServers"]


@pytest.mark.requirement("CONV-008.1-S1")
async def test_server_is_added_to_the_domains_settings(api: Api, user: httpx.AsyncClient, domain: str):
    # When the user adds a server to the domain's settings
    response = await save(user, domain, **{"web-search": WEB_SEARCH})
    # Then that succeeds
    assert response.status_code == 200
    # And the settings have it
    settings, _ = await state(user, domain)
    assert settings["web-search"]["command"] == "npx"
    assert settings["web-search"]["args"] == ["@anthropic/mcp-server-web-search"]
    assert settings["web-search"]["env"].keys() == {"SEARCH_API_KEY"}
    assert "xxx" not in str(settings)
    kept = await api.store.agents.get(AgentId(domain.rpartition("/")[2]))
    assert kept and kept.settings.mcp_servers["web-search"].secrets["SEARCH_API_KEY"].reveal() == "xxx"


@pytest.mark.requirement("CONV-008.1-S2", "002-ERR-MCP_NAME_RESERVED")
async def test_system_server_cannot_be_overridden(user: httpx.AsyncClient, domain: str):
    before = await state(user, domain)
    # When the user names a server `promptx`
    for name in ("promptx", "PromptX", "retriever"):
        response = await save(user, domain, **{name: WEB_SEARCH})
        # Then the response is 400
        assert (response.status_code, response.json()["error"]["code"]) == (400, "MCP_NAME_RESERVED")
    body = {"name": "x", "settings": {"mcpServers": {"promptx": WEB_SEARCH}}}
    assert (await user.post("/api/domains", json=body)).json()["error"]["code"] == "MCP_NAME_RESERVED"
    # And the system's own is as it was
    assert await state(user, domain) == before


@pytest.mark.requirement("CONV-008.1-S3")
async def test_merged_servers_are_seen_with_their_sources(user: httpx.AsyncClient, domain: str):
    # Given a server that the user configured
    await save(user, domain, **{"web-search": WEB_SEARCH})
    # When the domain's detail is read, then it lists the merged servers with their origin
    _, servers = await state(user, domain)
    assert [(it["name"], it["source"], it["readOnly"]) for it in servers] == [
        ("promptx", "system", True),
        ("retriever", "builtin", True),
        ("web-search", "user", False),
    ]


@pytest.mark.requirement("002-ERR-MCP_CONFIG_INVALID")
async def test_malformed_configuration_is_refused(user: httpx.AsyncClient, domain: str):
    before = await state(user, domain)
    for server, field in (
        ({}, ""),
        ({"command": "npx", "args": "x"}, ".args"),
        ({"command": "npx", "args": ["x"], "env": {"LD_PRELOAD": "/tmp/x.so"}}, ".env.LD_PRELOAD"),
        ({"url": "file:///etc/passwd"}, ".url"),
    ):
        response = await save(user, domain, bad=server)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "MCP_CONFIG_INVALID")
        assert error["param"] == f"settings.mcpServers.bad{field}"
    assert await state(user, domain) == before


@pytest.mark.requirement("002-ERR-MCP_COMMAND_NOT_ALLOWED")
async def test_command_that_is_not_allowed_is_refused(user: httpx.AsyncClient, domain: str):
    before = await state(user, domain)
    for command in ("sh", "../npx", "npx;rm", "/usr/bin/npx", "python3"):
        response = await save(user, domain, bad={"command": command, "args": ["x"]})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "MCP_COMMAND_NOT_ALLOWED")
    assert await state(user, domain) == before
