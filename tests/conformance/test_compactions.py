"""Seed 001, compaction: a summary for the model, the messages kept for everyone."""

import pytest

from tests.http.calls import items, refusal
from tests.talking import Talk
from threadkeep.testing import Say, ScriptedModel


async def talk_of(talk: Talk, turns: int) -> str:
    conversation = await talk.titled_conversation(settings={"compactionThreshold": 10})
    for number in range(turns):
        await talk.ask(conversation, f"问题 {number}")
    return conversation


@pytest.mark.requirement("001-R3-S1")
async def test_conversation_is_compacted_by_hand(talk: Talk, model: ScriptedModel):
    conversation = await talk_of(talk, 6)
    before = await talk.messages(conversation)
    model.script([Say("用户问了六个问题。")])
    response = await talk.client.post(f"/api/conversations/{conversation}/compact", json={"keepLast": 4})
    assert response.status_code == 200, response.text
    assert response.json()["archivedCount"] == 8
    after = await talk.messages(conversation)
    assert [it["archived"] for it in after] == [True] * 8 + [False] * 4
    assert [{**it, "archived": False} for it in after] == before
    await talk.ask(conversation, "接下来呢？")
    told, *sent = [it["content"] for it in model.requests[-1].body["messages"]]
    assert told.endswith("[摘要 Summary]\n用户问了六个问题。")
    assert sent == ["问题 4", "OK.", "问题 5", "OK.", "接下来呢？"]


@pytest.mark.requirement("001-R3-S2")
async def test_too_few_messages_are_not_compacted(talk: Talk, model: ScriptedModel):
    conversation = await talk_of(talk, 4)
    before = (await talk.client.get(f"/api/conversations/{conversation}")).json()
    response = await talk.client.post(f"/api/conversations/{conversation}/compact")
    error = refusal(response, 409, "TOO_FEW_MESSAGES")
    assert (error["details"]["messages"], error["details"]["threshold"]) == (8, 10)
    assert "8" in error["message"]
    assert "10" in error["message"]
    assert (await talk.client.get(f"/api/conversations/{conversation}")).json() == before
    assert await items(talk.client, f"/api/conversations/{conversation}/compactions") == []
