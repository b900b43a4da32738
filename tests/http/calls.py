"""What the tests of the HTTP face do again and again."""

from typing import Any

import httpx

from tests.conftest import Api
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, UserId

Json = dict[str, Any]


async def new_agent(client: httpx.AsyncClient, **body: Any) -> Json:
    """An agent of the client's user."""
    answer = await client.post("/api/agents", json={"name": "法律顾问", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def new_conversation(client: httpx.AsyncClient, agent_id: str | None = None, **body: Any) -> Json:
    """A further conversation of the client's user, with an agent of its own if none is named."""
    agent_id = agent_id or (await new_agent(client))["id"]
    answer = await client.post(f"/api/agents/{agent_id}/conversations", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def main_chat(client: httpx.AsyncClient) -> Json:
    """The main conversation of the client's user with the default agent."""
    (default,) = [agent for agent in await items(client, "/api/agents") if agent["isDefault"]]
    return (await client.put(f"/api/agents/{default['id']}/conversation")).json()


def refusal(answer: httpx.Response, status: int, code: str, param: str | None = None) -> Json:
    """The error of an answer that must be refused in just this way."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}, answer.text
    assert (error["code"], error.get("param")) == (code, param), answer.text
    assert error["message"]
    assert error["requestId"] == answer.headers["x-request-id"]
    assert error.keys() <= {"code", "message", "param", "details", "requestId"}, answer.text
    return error


async def items(client: httpx.AsyncClient, path: str, **query: Any) -> list[Json]:
    """All items of a list, page by page."""
    found: list[Json] = []
    while True:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert page.keys() == {"items", "nextCursor"}
        found += page["items"]
        if page["nextCursor"] is None:
            return found
        query["cursor"] = page["nextCursor"]


async def stored(api: Api, conversation: Json) -> Conversation:
    """The aggregate of a conversation that a client sees."""
    found = await api.store.conversations.get(
        UserId(conversation["userId"]), ConversationId(conversation["id"])
    )
    assert found
    return found
