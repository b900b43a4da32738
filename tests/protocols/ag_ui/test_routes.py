"""Runs over HTTP, as far as no real client is needed: what is refused, and to whom."""

from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import new_agent
from tests.making import NOW
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, UserId

pytestmark = ONLY_SQLITE
URL = "/api/ag-ui"


def run(**fields: Any) -> dict[str, Any]:
    message = {"id": "u1", "role": "user", "content": "Hi"}
    return {"threadId": "t", "runId": "r", "messages": [message], **fields}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/default", run(messages="x"), 422, "INVALID_REQUEST"),
        (
            "POST",
            "/default",
            run(messages=[{"role": "user", "content": " "}]),
            400,
            "MESSAGE_CONTENT_REQUIRED",
        ),
        ("POST", "/nobody", run(), 404, "AGENT_NOT_FOUND"),
        ("POST", "/default", run(messages=[]), 404, "CONVERSATION_NOT_FOUND"),
        ("POST", "/agent/default/stop/nothing", {}, 404, "CONVERSATION_NOT_FOUND"),
        ("GET", "/nothing/here", None, 404, "NOT_FOUND"),
        ("DELETE", "/info", None, 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_refusals_have_their_message_where_copilotkit_looks(
    alice: httpx.AsyncClient, method: str, path: str, body: Any, status: int, code: str
):
    refused = await alice.request(method, URL + path, json=body)
    assert (refused.status_code, refused.json()["error"]) == (status, code)
    assert refused.json()["message"]
    assert (await alice.get("/api/conversations")).json()["items"] == []


async def test_strangers_are_told_in_the_same_shape(api: Api):
    refused = await api.client().get(f"{URL}/info")
    assert (refused.status_code, refused.json()["error"]) == (401, "UNAUTHENTICATED")


async def test_info_lists_the_agents_that_the_user_may_talk_to(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    own = (await new_agent(alice))["id"]
    info = (await alice.get(f"{URL}/info")).json()
    assert info["mode"] == "sse"
    assert {"default", own} <= info["agents"].keys()
    assert own not in (await bob.get(f"{URL}/info")).json()["agents"]


async def test_thread_of_another_agent_is_a_conflict(alice: httpx.AsyncClient, api: Api):
    first, second = [(await new_agent(alice))["id"] for _ in range(2)]
    made = Conversation.start(UserId("alice"), AgentId(first), NOW)
    await api.store.conversations.add(made)
    await api.store.outside_ids.bind(made, "t")
    refused = await alice.post(f"{URL}/{second}", json=run())
    assert (refused.status_code, refused.json()["error"]) == (409, "CONFLICT")


async def test_connecting_creates_nothing(alice: httpx.AsyncClient):
    connected = await alice.post(f"{URL}/agent/default/connect", json=run(messages=[]))
    assert (connected.status_code, connected.content) == (200, b"")
    assert connected.headers["content-type"].startswith("text/event-stream")
    assert (await alice.get("/api/conversations")).json()["items"] == []
