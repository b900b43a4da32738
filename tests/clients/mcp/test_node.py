"""The real clients in node: @modelcontextprotocol/client in both eras, and @modelcontextprotocol/sdk 1.x."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import new_agent, signed_in
from tests.clients.mcp.client import new_key
from tests.clients.node import Driver, driving
from tests.talking import Talk
from threadkeep.testing import Fail, Say, ScriptedModel, Think, ToolServer, UseTool

HERE = Path(__file__).parent
Json = dict[str, Any]

CLIENTS = {
    "client, 2026-07-28": {"package": "client", "version": "2026-07-28"},
    "client, 2025-11-25": {"package": "client", "version": "2025-11-25"},
    "sdk": {"package": "sdk"},
}
EACH_CLIENT = pytest.mark.parametrize("kind", list(CLIENTS))


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    async with driving(HERE / "driver.mjs", HERE / "node") as driver:
        yield driver


async def opened(driver: Driver, talk: Talk, kind: str, name: str = "a", **options: Any) -> Json:
    usual = {"url": f"{talk.url}/mcp", "headers": signed_in("alice")}
    return await driver.do("open", name=name, **CLIENTS[kind], **{**usual, **options})


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


@EACH_CLIENT
async def test_conversation(talk: Talk, driver: Driver, model: ScriptedModel, kind: str):
    agent_id = await new_agent(talk)
    met = await opened(driver, talk, kind)
    assert met["server"]["name"] == "threadkeep"
    assert met["version"] == CLIENTS[kind].get("version")
    model.script([Think("Hm."), Say("Hello.")], [Say("One "), Fail("Overloaded.", "invalid_request_error")])
    arguments = {"content": "Hi", "agentId": agent_id}
    sent = await driver.do("call", name="a", tool="send_message", arguments=arguments)
    assert sent["structuredContent"]["content"] == "Hello."
    assert json.loads(sent["content"][0]["text"]) == sent["structuredContent"]
    assert sent["progress"] == "Hello."
    conversation = {"conversationId": sent["structuredContent"]["conversationId"]}
    failed = await driver.do(
        "call", name="a", tool="send_message", arguments={"content": "?", **conversation}
    )
    assert failed["isError"]
    assert failed["structuredContent"]["status"] == "FAILED"
    for tool, given in (
        ("list_agents", {}),
        ("read_conversation", conversation),
        ("search_conversations", {"query": "Hi"}),
    ):
        # The package checks the result against the tool's schema.
        assert not (await driver.do("call", name="a", tool=tool, arguments=given)).get("isError")
    listed = await driver.do("list", name="a")
    assert len(listed["tools"]) == 5
    assert len(listed["templates"]) == 2
    (content,) = await driver.do("read", name="a", uri=listed["resources"][0])
    assert [it["content"] for it in json.loads(content["text"])["messages"]][:2] == ["Hi", "Hello."]
    await driver.do("close", name="a")


@EACH_CLIENT
async def test_approval(talk: Talk, driver: Driver, model: ScriptedModel, kind: str):
    with ToolServer(note) as server:
        settings = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        agent_id = await new_agent(talk, **settings)
        model.script([UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Noted.")])
        await opened(driver, talk, kind, decision="Allow once")
        arguments = {"content": "Note tea", "agentId": agent_id}
        sent = await driver.do("call", name="a", tool="send_message", arguments=arguments)
        view = sent["structuredContent"]
        if kind == "client, 2026-07-28":
            assert len(sent["questions"]) == 1
        else:
            assert (view["status"], sent["questions"]) == ("WAITING", [])
            answer = {
                "turnId": view["turnId"],
                "requestId": view["approvals"][0]["requestId"],
                "action": "allow",
            }
            answered = await driver.do("call", name="a", tool="answer_approval", arguments=answer)
            view = answered["structuredContent"]
        assert (view["status"], view["content"]) == ("COMPLETED", "Noted.")
        assert [it.arguments for it in server.uses] == [{"text": "tea"}]


@EACH_CLIENT
async def test_refusals(talk: Talk, driver: Driver, kind: str):
    with pytest.raises(AssertionError, match=r"401|UNAUTHENTICATED"):
        await opened(driver, talk, kind, headers={"authorization": "Bearer wrong"})
    reading = {"x-api-key": (await new_key(talk, "read"))["key"]}
    await opened(driver, talk, kind, headers=reading)
    refused = await driver.do("call", name="a", tool="send_message", arguments={"content": "Hi"})
    assert refused["isError"]
    assert "scope `chat`" in refused["content"][0]["text"]
    with pytest.raises(AssertionError, match="not found"):
        await driver.do(
            "read", name="a", uri="threadkeep://conversations/0190b5a0-0000-7000-8000-000000000000"
        )
