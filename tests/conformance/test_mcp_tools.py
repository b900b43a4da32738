"""Seed 002, CONV-008: the AI uses the MCP servers that a domain's user has configured."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.turning import Chaos, running_chaos
from tests.scripted_model import ScriptedModel


@pytest.fixture
async def domains(
    database_url: str, model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Chaos]:
    """A running system whose model does as it is told."""
    async with running_chaos(database_url, model, tmp_path, monkeypatch) as domains:
        yield domains


@pytest.mark.requirement("CONV-008-S3")
async def test_ai_calls_the_tools_of_a_custom_server(domains: Chaos, model: ScriptedModel):
    # Given 领域配置了自定义 MCP "web-search"
    domain = await domains.agent(**{"web-search": domains.server("good")})
    # When 系统创建 AgentX Session
    conversation = await domains.conversation(domain)
    asked = {"text": "民法典"}
    reply = await domains.talk.ask(conversation, f"use web-search__echo {json.dumps(asked)}")
    # Then Session 配置包含用户自定义的 "web-search" MCP
    offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "web-search__echo" in offered
    # And AI 可以调用该 MCP 提供的工具
    assert reply["status"] == "COMPLETED"
    (call,) = reply["toolCalls"]
    assert (call["server"], call["toolName"], call["status"]) == ("web-search", "echo", "ok")
    assert call["result"] == "民法典"
