"""Seed 000, briefings: from a notice to a conversation about it."""

from typing import Any

import pytest

from tests.http.calls import items
from tests.talking import Talk
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel


async def agent_b(talk: Talk) -> str:
    return (await talk.client.post("/api/agents", json={"name": "B"})).json()["id"]


async def brief(talk: Talk, agent_id: str, title: str, summary: str = "最近7天……") -> str:
    body = {
        "agentId": agent_id,
        "userId": "local",
        "title": title,
        "summary": summary,
        "priority": "P1",
        "actions": [{"type": "start_conversation", "label": "继续对话"}],
    }
    response = await talk.client.post("/api/briefings", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]


async def go_on(talk: Talk, briefing_id: str) -> dict[str, Any]:
    """Continues the conversation of a briefing."""
    response = await talk.client.post(f"/api/briefings/{briefing_id}/actions/start_conversation")
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.requirement("REQ-CONV-001-S1", "REQ-CONV-005-S1")
async def test_briefing_creates_the_conversation_and_is_its_card(talk: Talk):
    agent = await agent_b(talk)
    assert await items(talk.client, "/api/conversations") == []
    started = await go_on(talk, await brief(talk, agent, "代码返工率50%"))
    (conversation,) = await items(talk.client, "/api/conversations")
    assert (conversation["id"], conversation["userId"], conversation["agentId"]) == (
        started["conversation_id"], "local", agent,
    )  # fmt: skip
    (card,) = await talk.messages(conversation["id"])
    assert (card["contentType"], card["role"], card["content"]["title"]) == (
        "briefing_card", "system", "代码返工率50%",
    )  # fmt: skip


@pytest.mark.requirement("REQ-CONV-001-S2")
async def test_another_briefing_reuses_the_conversation(talk: Talk):
    agent = await agent_b(talk)
    first = await go_on(talk, await brief(talk, agent, "一"))
    await talk.ask(first["conversation_id"], "为什么会这样?")
    second = await go_on(talk, await brief(talk, agent, "二"))
    assert second["conversation_id"] == first["conversation_id"]
    assert len(await items(talk.client, "/api/conversations")) == 1


@pytest.mark.requirement("REQ-CONV-005-S2")
async def test_three_briefings_are_cards_in_one_conversation(talk: Talk):
    agent = await agent_b(talk)
    briefings = [await brief(talk, agent, title) for title in ("一", "二", "三")]
    places = {(await go_on(talk, briefing))["conversation_id"] for briefing in briefings}
    assert len(places) == 1
    messages = await talk.messages(places.pop())
    assert [it["contentType"] for it in messages] == ["briefing_card"] * 3
    assert [it["content"]["title"] for it in messages] == ["一", "二", "三"]


@pytest.mark.requirement("REQ-CONV-005-S3")
async def test_question_across_briefings_reaches_the_model_with_both(talk: Talk, model: ScriptedModel):
    def relate(request: Recorded) -> Reply:
        told = str(request.body["messages"])
        both = "返工率50%" in told and "Review耗时超标" in told
        return [Say("返工率50%与Review耗时超标有关联。" if both else "我不知道。")]

    model.otherwise = relate
    agent = await agent_b(talk)
    place = ""
    for title, summary in (("返工率50%", "返工过多"), ("Review耗时超标", "中位耗时30小时")):
        place = (await go_on(talk, await brief(talk, agent, title, summary)))["conversation_id"]
    reply = await talk.ask(place, "这两个问题有关联吗？")
    assert "返工率50%" in reply["content"]
    assert "Review耗时超标" in reply["content"]
    (question,) = [it["content"] for it in model.requests[0].body["messages"] if it["role"] == "user"]
    assert question.index("标题：返工率50%") < question.index("标题：Review耗时超标\n摘要：中位耗时30小时")
    assert question.endswith("这两个问题有关联吗？")
