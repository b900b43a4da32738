"""Seed 002, conversation-system: roles and memory by PromptX, over /api/domains."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.roles import DOMAIN, LAWYER, write
from tests.talking import Talk
from threadkeep.domain.ids import AgentId
from threadkeep.domain.workspace import Workspaces
from threadkeep.testing import Recorded, Say, ScriptedModel, UseTool


async def make_domain(talk: Talk, **said: Any) -> dict[str, Any]:
    """A domain to talk to."""
    response = await talk.client.post("/api/domains", json={"name": "法律顾问", **said})
    assert response.status_code == 201
    return response.json()


async def converse(talk: Talk, domain: dict[str, Any]) -> str:
    """A conversation with a title, so that the model is asked for none."""
    path = f"/api/domains/{domain['id']}/conversations"
    response = await talk.client.post(path, json={"title": "合同咨询"})
    return response.json()["id"]


async def events(talk: Talk, conversation_id: str, content: str) -> list[dict[str, Any]]:
    return await talk.events(await talk.begin(conversation_id, content))


def system(request: Recorded) -> str:
    """The system prompt of a request."""
    (text,) = [it["content"] for it in request.body["messages"] if it["role"] == "system"]
    return text


def told(request: Recorded) -> str:
    """What the model was told by the tools that it used."""
    return "\n".join(it["content"] for it in request.body["messages"] if it["role"] == "tool")


def offered(request: Recorded) -> set[str]:
    return {tool["function"]["name"] for tool in request.body.get("tools", ())}


@pytest.mark.requirement("CONV-007-S1")
async def test_domain_acts_in_its_primary_role(talk: Talk, model: ScriptedModel):
    # Given a domain with a primary role and a description
    domain = await make_domain(talk, primaryRoleId="legal-adviser", systemPrompt="你服务于杭州的茶商。")
    assert domain["primaryRoleId"] == "legal-adviser"
    model.script(
        [UseTool("promptx_action", {"role": "legal-adviser"})], [Say("违约金过高。")], [Say("请核对条款。")]
    )
    # When a conversation is created
    conversation_id = await converse(talk, domain)
    happened = await events(talk, conversation_id, "这份合同有什么风险？")
    first, second = model.requests
    # Then its prompt has the description and leads the model to activate that role
    assert "你服务于杭州的茶商。" in system(first)
    assert "`legal-adviser`" in system(first)
    assert "promptx_action" in system(first)
    assert {"promptx_action", "promptx_recall", "promptx_remember"} <= offered(first)
    # And the role defines what the model does: the tool returns its whole text
    assert "审阅合同" in told(second)
    (result,) = [event for event in happened if event["type"] == "tool_result"]
    assert result["status"] == "ok"
    assert happened[-1]["type"] == "done"
    # And in later turns, where earlier tool results are not shown, the role is still the model's own
    await events(talk, conversation_id, "第二条呢？")
    assert "审阅合同" in system(model.requests[2])


@pytest.mark.requirement("CONV-007-S1")
async def test_default_role_is_the_assistant(talk: Talk, model: ScriptedModel):
    domain = await make_domain(talk)
    assert domain["primaryRoleId"] == "assistant"
    await events(talk, await converse(talk, domain), "你好")
    assert "`assistant`" in system(model.requests[0])


@pytest.mark.requirement("CONV-007-S1")
async def test_role_of_the_domains_workspace_is_used(talk: Talk, model: ScriptedModel, tmp_path: Path):
    domain = await make_domain(talk, primaryRoleId="lawyer")
    write(Workspaces(tmp_path / "data").of(AgentId(domain["id"])), LAWYER, f"{DOMAIN}/lawyer")
    model.script([UseTool("promptx_action", {"role": "lawyer"})], [Say("好。")])
    await events(talk, await converse(talk, domain), "你好")
    assert "Read every clause." in told(model.requests[1])


@pytest.mark.requirement("CONV-007-S1")
async def test_role_that_does_not_exist_is_told_and_harms_nothing(talk: Talk, model: ScriptedModel):
    domain = await make_domain(talk, primaryRoleId="jester")
    model.script([UseTool("promptx_action", {"role": "jester"})], [Say("好。")])
    happened = await events(talk, await converse(talk, domain), "你好")
    (result,) = [event for event in happened if event["type"] == "tool_result"]
    assert result["status"] == "error"
    assert "legal-adviser (法律顾问)" in result["error"]
    assert happened[-1]["type"] == "done"


@pytest.mark.requirement("CONV-010-S1")
async def test_model_remembers_and_recalls_by_itself(talk: Talk, model: ScriptedModel):
    # Given the PromptX server
    domain = await make_domain(talk)
    # When a user writes, then the model may remember
    remember = UseTool("promptx_remember", {"content": "用户在杭州经营茶叶店", "tags": "生意"})
    model.script([remember], [Say("记住了。")])
    happened = await events(talk, await converse(talk, domain), "我在杭州开了一家茶叶店。")
    (kept,) = [event for event in happened if event["type"] == "tool_result"]
    assert (kept["status"], kept["result"]["remembered"]["content"]) == ("ok", "用户在杭州经营茶叶店")
    # And in a later conversation it may recall
    model.script([UseTool("promptx_recall", {"query": "茶叶店"})], [Say("您的店在杭州。")])
    later = await converse(talk, domain)
    happened = await events(talk, later, "我的店在哪里？")
    assert "用户在杭州经营茶叶店" in told(model.requests[-1])
    # And what was found is an event, and a citation of the reply
    (found,) = [event for event in happened if event["type"] == "retrieval"]
    assert found["query"] == "茶叶店"
    assert [(hit["source"], hit["text"]) for hit in found["hits"]] == [("memory", "用户在杭州经营茶叶店")]
    reply = (await talk.messages(later))[-1]
    assert [it["snippet"] for it in reply["citations"]] == ["用户在杭州经营茶叶店"]
    # And another domain knows nothing of it
    other = await make_domain(talk)
    model.script([UseTool("promptx_recall", {"query": "茶叶店"})], [Say("不知道。")])
    happened = await events(talk, await converse(talk, other), "我的店在哪里？")
    assert [event["type"] for event in happened].count("retrieval") == 0
    (empty,) = [event for event in happened if event["type"] == "tool_result"]
    assert empty["result"] == {"memories": []}


@pytest.mark.requirement("CONV-010-S1")
async def test_model_need_not_use_its_memory(talk: Talk, model: ScriptedModel):
    happened = await events(talk, await converse(talk, await make_domain(talk)), "你好")
    assert {"promptx_recall", "promptx_remember"} <= offered(model.requests[0])
    assert not {"tool_call", "retrieval"} & {event["type"] for event in happened}
    assert happened[-1]["type"] == "done"
