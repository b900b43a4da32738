"""Seed 002, conversation-system: the MCP servers of a session (CONV-008), with real servers."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import secret_key_for
from tests.mcp.roles import DOMAIN, LAWYER, write
from tests.talking import Talk, talking
from threadkeep.domain.ids import AgentId
from threadkeep.domain.workspace import Workspaces
from threadkeep.testing import Say, ScriptedModel, UseTool, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S

PROMPTX_TOOLS = {"promptx_action", "promptx_recall", "promptx_remember"}


@pytest.fixture
async def talk(
    database_url: str, model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Talk]:
    """A Threadkeep whose operator allows `mcp-server-time`, which lies beside our Python."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.defpath)))
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        mcp_allowed_commands=("mcp-server-time",),
        mcp_connect_budget_s=PATIENCE_S,
    )
    async with talking(settings) as talk:
        yield talk


async def make_domain(talk: Talk, **servers: dict[str, Any]) -> str:
    body = {"name": "法律顾问", "primaryRoleId": "lawyer", "settings": {"mcpServers": servers}}
    response = await talk.client.post("/api/domains", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


async def ask(talk: Talk, domain_id: str, question: str) -> list[dict[str, Any]]:
    started = await talk.client.post(f"/api/domains/{domain_id}/conversations", json={"title": "咨询"})
    return await talk.events(await talk.begin(started.json()["id"], question))


def offered(model: ScriptedModel) -> set[str]:
    return {tool["function"]["name"] for tool in model.requests[0].body.get("tools", ())}


def results(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "tool_result"]


@pytest.mark.requirement("CONV-008-S1")
async def test_session_has_promptx_in_the_domains_workspace(talk: Talk, model: ScriptedModel, tmp_path: Path):
    # Given a new conversation
    domain_id = await make_domain(talk)
    workspace = Workspaces(tmp_path / "data").of(AgentId(domain_id))
    write(workspace, LAWYER, f"{DOMAIN}/lawyer")
    model.script([UseTool("promptx_action", {"role": "lawyer"})], [Say("好。")])
    events = await ask(talk, domain_id, "你好")
    # Then its session has the system's PromptX server
    shown = (await talk.client.get(f"/api/domains/{domain_id}")).json()["mcpServers"]
    assert [(it["source"], it["readOnly"]) for it in shown if it["name"] == "promptx"] == [("system", True)]
    # And PROMPTX_PROJECT_DIR is the domain's workspace: the role was read from there
    (result,) = results(events)
    assert "Read every clause." in str(result["result"])
    # And the model is offered its three tools
    assert offered(model) >= PROMPTX_TOOLS


@pytest.mark.requirement("CONV-008-S3")
async def test_session_has_the_owners_own_server(talk: Talk, model: ScriptedModel):
    # Given a server that the user configured
    domain_id = await make_domain(
        talk, clock={"command": "mcp-server-time", "args": ["--local-timezone=UTC"]}
    )
    arguments = {"source_timezone": "Asia/Shanghai", "time": "16:30", "target_timezone": "UTC"}
    model.script([UseTool("clock__convert_time", arguments)], [Say("八点半。")])
    events = await ask(talk, domain_id, "上海下午四点半是 UTC 几点？")
    # Then the session has it, and the model can call its tools
    assert {"clock__convert_time", "clock__get_current_time"} <= offered(model)
    (called,) = [event for event in events if event["type"] == "tool_call"]
    assert (called["server"], called["tool_name"]) == ("clock", "convert_time")
    (result,) = results(events)
    assert result["status"] == "ok"
    assert "T08:30:00" in str(result["result"])
    assert events[-1]["type"] == "done"
