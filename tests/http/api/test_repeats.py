"""Requests that are sent again with the same `Idempotency-Key`: nothing is created twice."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import new_agent
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.http.routes import ROUTES
from threadkeep.protocols.openai.routes import ROUTES as OPENAI_ROUTES

HAS_ITS_OWN_WAY = {
    "/api/agents/{agent_id}/conversations",
    "/api/conversations/{conversation_id}/messages",
    "/api/conversations/{conversation_id}/regenerate",
    "/api/conversations/{conversation_id}/queued/{message_id}/send",
    "/api/chat",
}
"""The key is stored with the turn or the conversation that begins."""
CREATES_NOTHING = {
    "/api/agents/{agent_id}/mcp-servers/{name}/test",
    "/api/agents/{agent_id}/documents/{document_id}/retry",
    "/api/conversations/{conversation_id}/restore",
    "/api/conversations/{conversation_id}/session",
    "/api/imports/{import_id}/stop",
    "/api/messages/{message_id}/feedback",
    "/api/turns/{turn_id}/approvals/{request_id}",
    "/api/conversations/{conversation_id}/path",
    "/api/conversations/{conversation_id}/abort",
    "/api/conversations/{conversation_id}/executions",
    "/api/turns/{turn_id}/rerun",
    "/api/briefings/{briefing_id}/actions/start_conversation",
    "/api/briefings/{briefing_id}/read",
    "/api/admin/turns/{turn_id}/abort",
    "/api/admin/gateways/test",
    "/api/admin/gateways/{gateway}/test",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/responses/{response_id}/cancel",
    "/v1/conversations/{conversation}",
}
"""Changes what is there, the same however often it is asked, or runs a model without a trace."""
HEADERS = {"Idempotency-Key": "6f1c"}


def test_every_route_that_creates_something_takes_the_key():
    posts = [it for it in (*ROUTES, *OPENAI_ROUTES) if it.method == "POST" and not it.alias_of]
    unknown = {it.path for it in posts if not it.creates} - HAS_ITS_OWN_WAY - CREATES_NOTHING
    assert unknown == set(), "say here whether a repetition would create something"
    assert {it.path for it in posts if "Idempotency-Key" in it.headers} == HAS_ITS_OWN_WAY


async def prepared(alice: httpx.AsyncClient) -> list[tuple[str, dict[str, Any]]]:
    """Requests that create something."""
    agent = await new_agent(alice)
    item = {"type": "message", "role": "user", "content": "Hello."}
    outside = (await alice.post("/v1/conversations", json={"items": [item]})).json()["id"]
    (conversation,) = (await alice.get("/api/conversations")).json()["items"]
    (message,) = (await alice.get(f"/api/conversations/{conversation['id']}/messages")).json()["items"]
    briefing = {"agentId": agent["id"], "userId": "alice", "title": "T", "summary": "S", "priority": "P1"}
    upload = {"files": {"files": ("a.txt", b"Hello.")}}
    at_message = {"json": {"messageId": message["id"]}}
    return [
        ("/api/agents", {"json": {"name": "Second"}}),
        (f"/api/agents/{agent['id']}/duplicate", {"json": {}}),
        (f"/api/agents/{agent['id']}/documents", upload),
        (f"/api/conversations/{conversation['id']}/fork", at_message),
        ("/api/briefings", {"json": briefing}),
        ("/api/files", upload),
        ("/v1/conversations", {"json": {}}),
        (f"/v1/conversations/{outside}/items", {"json": {"items": [item]}}),
    ]


async def test_repeated_request_gets_the_first_ones_response_and_creates_nothing(api: Api):
    alice = api.as_user("alice")
    for number, (path, sent) in enumerate(await prepared(alice)):
        headers = {"Idempotency-Key": f"key-{number}"}
        first, second = [await alice.post(path, headers=headers, **sent) for _ in range(2)]
        assert first.is_success, (path, first.text)
        assert (second.status_code, second.content) == (first.status_code, first.content), path
        assert second.headers.get("location") == first.headers.get("location")


@ONLY_SQLITE
async def test_key_of_another_request_is_refused_and_other_users_have_keys_of_their_own(api: Api):
    alice, bob = api.as_user("alice"), api.as_user("bob")
    first = await alice.post("/api/agents", json={"name": "One"}, headers=HEADERS)
    for path, body in (("/api/agents", {"name": "Two"}), ("/api/keys", {"name": "One", "scopes": ["read"]})):
        refused = await alice.post(path, json=body, headers=HEADERS)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    others = await bob.post("/api/agents", json={"name": "One"}, headers=HEADERS)
    assert others.status_code == 201
    assert others.json()["id"] != first.json()["id"]


async def test_of_many_requests_at_once_one_creates_and_no_other(api: Api):
    alice = api.as_user("alice")
    calls = [alice.post("/api/agents", json={"name": "One"}, headers=HEADERS) for _ in range(8)]
    responses = await asyncio.gather(*calls)
    assert {it.status_code for it in responses} <= {201, 409}
    assert len({it.json()["id"] for it in responses if it.status_code == 201}) == 1
    named = [it for it in (await alice.get("/api/agents")).json()["items"] if it["name"] == "One"]
    assert len(named) == 1


@ONLY_SQLITE
async def test_refused_request_can_be_sent_again(api: Api):
    alice = api.as_user("alice")
    for _ in range(2):
        refused = await alice.post("/api/agents", json={"name": ""}, headers=HEADERS)
        assert refused.status_code == 422
    assert (await alice.post("/api/agents", json={"name": "Now"}, headers=HEADERS)).status_code == 201


@ONLY_SQLITE
async def test_request_whose_outcome_nobody_knows_is_not_carried_out_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    alice = api.as_user("alice")
    services = await api.app.services()
    with monkeypatch.context() as patched:

        async def fail(*_: object) -> None:
            raise StorageUnavailable("The database doesn't respond.")

        patched.setattr(type(services.store.repeats), "answer", fail)
        lost = await alice.post("/api/agents", json={"name": "One"}, headers=HEADERS)
        assert lost.status_code == 503
    again = await alice.post("/api/agents", json={"name": "One"}, headers=HEADERS)
    assert again.status_code == 409
    assert "took effect" in again.json()["error"]["message"]


@ONLY_SQLITE
async def test_secret_that_is_shown_once_is_not_kept_and_no_second_one_is_made(api: Api):
    alice = api.as_user("alice")
    body = {"name": "Report", "scopes": ["read"]}
    first, second = [await alice.post("/api/keys", json=body, headers=HEADERS) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 409)
    assert "took effect" in second.json()["error"]["message"]
    assert len((await alice.get("/api/keys")).json()["items"]) == 1


@ONLY_SQLITE
async def test_what_is_kept_is_forgotten_after_a_day_or_when_there_is_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.repeats.MOST_OF_A_USER", 2)
    alice = api.as_user("alice")

    async def created(number: int) -> str:
        headers = {"Idempotency-Key": f"k{number}"}
        return (await alice.post("/api/agents", json={"name": "One"}, headers=headers)).json()["id"]

    ids = [await created(number) for number in range(3)]
    assert [await created(number) for number in (2, 1)] == [ids[2], ids[1]]
    assert await created(0) != ids[0]
    repeats = api.store.repeats
    assert await repeats.forget_old(0) == 0
    assert await repeats.forget_old(2**53) == 2
