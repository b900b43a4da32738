"""Conversations over HTTP."""

import httpx


async def test_conversation_is_created_read_renamed_and_deleted(alice: httpx.AsyncClient):
    agent = (await alice.post("/api/agents", json={"name": "法律顾问"})).json()
    made = await alice.post(f"/api/agents/{agent['id']}/conversations", json={"title": "合同咨询"})
    assert made.status_code == 201
    conversation = made.json()
    assert conversation["domainId"] == conversation["agentId"] == agent["id"]
    path = f"/api/conversations/{conversation['id']}"
    detail = (await alice.get(path)).json()
    assert detail["title"] == "合同咨询"
    assert detail["messages"] == []
    renamed = await alice.patch(path, json={"title": "新"})
    assert renamed.json()["title"] == "新"
    assert renamed.json()["updatedAt"] == conversation["updatedAt"]
    assert (await alice.delete(path)).status_code == 204
    gone = await alice.get(path)
    assert gone.status_code == 404
    assert gone.json()["error"]["code"] == "CONVERSATION_NOT_FOUND"
