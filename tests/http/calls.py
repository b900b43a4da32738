"""What the tests of the HTTP face do again and again."""

from typing import Any

import httpx

from tests.conftest import Api
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import ConversationId, UserId

Json = dict[str, Any]


async def new_agent(client: httpx.AsyncClient, **body: Any) -> Json:
    """An agent of the client's user."""
    response = await client.post("/api/agents", json={"name": "法律顾问", **body})
    assert response.status_code == 201, response.text
    return response.json()


async def new_conversation(client: httpx.AsyncClient, agent_id: str | None = None, **body: Any) -> Json:
    """A further conversation of the client's user, with an agent of its own if none is named."""
    agent_id = agent_id or (await new_agent(client))["id"]
    response = await client.post(f"/api/agents/{agent_id}/conversations", json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def main_chat(client: httpx.AsyncClient) -> Json:
    """The main conversation of the client's user with the default agent."""
    (default,) = [agent for agent in await items(client, "/api/agents") if agent["isDefault"]]
    return (await client.put(f"/api/agents/{default['id']}/conversation")).json()


def refusal(response: httpx.Response, status: int, code: str, param: str | None = None) -> Json:
    """The error of a response that must be refused in just this way."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert response.json().keys() == {"error"}, response.text
    assert (error["code"], error.get("param")) == (code, param), response.text
    assert error["message"]
    assert error["requestId"] == response.headers["x-request-id"]
    assert error.keys() <= {"code", "message", "param", "details", "requestId"}, response.text
    return error


async def items(client: httpx.AsyncClient, path: str, **query: Any) -> list[Json]:
    """All items of a list, page by page."""
    found: list[Json] = []
    while True:
        response = await client.get(path, params=query)
        assert response.status_code == 200, response.text
        page = response.json()
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
