"""Requests that are sent again with the same `Idempotency-Key`: nothing is created twice.

What begins a turn, whose key is stored with it, is in `test_repeated_turns`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.api.test_imports import in_json, numbered
from tests.http.api.test_repeated_turns import BEGINS_A_TURN
from tests.http.calls import new_conversation
from tests.talking import JSON, Talk
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.http.protocols import FOREIGN_ROUTES
from threadkeep.http.routes import ROUTES
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, until

NEW_CONVERSATIONS = {"/api/agents/{agent_id}/conversations", "/api/conversations"}
"""The key is stored with the conversation (`test_conversations`)."""
CREATES_NOTHING = {
    "tests what is there": {
        "/api/agents/{agent_id}/mcp-servers/{name}/test",
        "/api/admin/gateways/test",
        "/api/admin/gateways/{gateway}/test",
    },
    "changes or ends what is there, the same however often it is asked": {
        "/api/agents/{agent_id}/documents/{document_id}/retry",
        "/api/conversations/{conversation_id}/restore",
        "/api/conversations/{conversation_id}/session",
        "/api/conversations/{conversation_id}/path",
        "/api/conversations/{conversation_id}/stop",
        "/api/imports/{import_id}/stop",
        "/api/messages/{message_id}/feedback",
        "/api/briefings/{briefing_id}/read",
        "/api/admin/turns/{turn_id}/stop",
        "/api/ag-ui/agent/{agent}/stop/{thread_id}",
        "/v1/responses/{response_id}/cancel",
        "/v1/conversations/{conversation}",
        "/api/admin/users/{user_id}/suspend",
        "/api/admin/users/{user_id}/unsuspend",
        "/api/admin/reassign-local",
    },
    "an invitation signs in once": {"/api/sign-in/invitation/accept"},
    "a link for another browser replaces the one before": {"/api/me/sessions/links"},
    "a turn that runs asks a model": {"/api/runs/v1/chat/completions"},
    "reads": {
        "/api/ag-ui/agent/{agent}/connect",
        "/api/sign-in/invitation",
        "/api/agents/preview",
        "/api/agents/{agent_id}/preview",
    },
    "is created once because of an id: of the request, the run, the briefing": {
        "/api/turns/{turn_id}/approvals/{request_id}",
        "/api/conversations/{conversation_id}/executions",
        "/api/briefings/{briefing_id}/actions/start_conversation",
    },
}
"""Why a repetition creates nothing, without a key."""
TAKES_NONE = {"/mcp"}
"""Creates something and takes no key: `docs/concepts.md` says so. An SDK's own retry is recognized."""
INVITES = {"/api/admin/invitations"}
"""For operators who sign people in by invitations."""
SHOWS_A_SECRET = {"/api/keys", "/api/conversations/{conversation_id}/shares", *INVITES}
HEADERS = {"Idempotency-Key": "6f1c"}


def test_every_route_that_creates_something_takes_the_key():
    posts = [it for it in (*ROUTES, *FOREIGN_ROUTES) if it.method == "POST" and not it.alias_of]
    others = {path for paths in CREATES_NOTHING.values() for path in paths} | TAKES_NONE
    assert {it.path for it in posts if it.creates} == KEEPS_RESPONSE | SHOWS_A_SECRET
    assert {it.path for it in posts if it.creates and it.shows_secret} == SHOWS_A_SECRET
    with_turns = {it.path for it in posts if it.begins_turn or "Idempotency-Key" in it.headers}
    assert with_turns == BEGINS_A_TURN | NEW_CONVERSATIONS
    taking = KEEPS_RESPONSE | SHOWS_A_SECRET | with_turns
    assert {it.path for it in posts} - taking == others, (
        "say here whether a repetition would create something"
    )


@dataclass(frozen=True, slots=True)
class Place:
    """What the requests below are about."""

    agent: str
    conversation: str
    message: str
    turn: str
    outside: str

    def path(self, route: str) -> str:
        """The path of a route that is about this."""
        return route.format(
            agent_id=self.agent,
            conversation_id=self.conversation,
            turn_id=self.turn,
            conversation=self.outside,
        )


ITEM = {"type": "message", "role": "user", "content": "Hello."}
UPLOAD = {"files": {"files": ("a.txt", b"Hello.")}}
GATEWAY = {"name": "second", "kind": "openai", "url": "http://127.0.0.1:9/v1", "models": ["m"]}
CREATING: dict[str, Callable[[Place], dict[str, Any]]] = {
    "/api/agents": lambda it: {"json": {"name": "Second"}},
    "/api/agents/{agent_id}/duplicate": lambda it: {"json": {}},
    "/api/agents/{agent_id}/documents": lambda it: UPLOAD,
    "/api/conversations/{conversation_id}/fork": lambda it: {"json": {"messageId": it.message}},
    "/api/conversations/{conversation_id}/compact": lambda it: {"json": {}},
    "/api/turns/{turn_id}/rerun": lambda it: {"json": {}, "headers": JSON},
    "/api/briefings": lambda it: {
        "json": {"agentId": it.agent, "userId": "local", "title": "T", "summary": "S", "priority": "P1"}
    },
    "/api/imports": lambda it: {"files": {"files": ("conversations.json", in_json(numbered(1)))}},
    "/api/files": lambda it: UPLOAD,
    "/api/admin/gateways": lambda it: {"json": GATEWAY},
    "/v1/conversations": lambda it: {"json": {}},
    "/v1/conversations/{conversation}/items": lambda it: {"json": {"items": [ITEM]}},
    "/v1/files": lambda it: {
        "files": {"file": ("a.txt", b"Hello.")},
        "data": {"purpose": "user_data"},
    },
}
KEEPS_RESPONSE = set(CREATING)


async def place(talk: Talk, model: ScriptedModel) -> Place:
    """A conversation that is long enough to be compacted, and one of an OpenAI client."""
    model.otherwise = [Say("OK.")]
    agent = (await talk.client.get("/api/agents")).json()["items"][0]["id"]
    conversation = await talk.titled_conversation(settings={"compactionThreshold": 6})
    replies = [await talk.ask(conversation, f"{number}?") for number in range(4)]
    outside = (await talk.client.post("/v1/conversations", json={"items": [ITEM]})).json()["id"]
    return Place(agent, conversation, replies[-1]["id"], replies[-1]["turnId"], outside)


async def test_repeated_request_gets_the_first_ones_response_and_creates_nothing(
    talk: Talk, model: ScriptedModel
):
    where = await place(talk, model)
    for number, (route, sent) in enumerate(CREATING.items()):
        request = sent(where)
        headers = {**request.pop("headers", {}), "Idempotency-Key": f"key-{number}"}
        first, second = [
            await talk.client.post(where.path(route), headers=headers, **request) for _ in range(2)
        ]
        assert first.is_success, (route, first.text)
        assert (second.status_code, second.content) == (first.status_code, first.content), route
        assert second.headers.get("location") == first.headers.get("location")


@ONLY_SQLITE
async def test_repeated_rerun_runs_once_and_one_that_was_left_again(talk: Talk, model: ScriptedModel):
    where = await place(talk, model)
    path, asked, gate = where.path("/api/turns/{turn_id}/rerun"), len(model.requests), Gate()
    model.script([Say("Left."), Wait(gate)], [Say("Again.")])
    async with talk.client.stream("POST", path, json={}, headers=HEADERS) as left:
        assert left.status_code == 200
        await gate.reached()
        busy = await talk.client.post(path, json={}, headers=HEADERS)
        assert busy.status_code == 409

    async def can_be_sent_again() -> bool:
        return (await talk.client.post(path, json={}, headers=HEADERS)).status_code == 200

    await until(can_be_sent_again)
    gate.open()
    again = await talk.client.post(path, json={}, headers=HEADERS)
    assert again.headers["content-type"].startswith("text/event-stream")
    assert again.text.startswith("event: rerun\n")
    assert "Again." in again.text
    assert len(model.requests) == asked + 2


async def test_of_many_requests_at_once_one_creates_and_no_other(api: Api):
    alice = api.as_user("alice")
    calls = [alice.post("/api/agents", json={"name": "One"}, headers=HEADERS) for _ in range(8)]
    responses = await asyncio.gather(*calls)
    assert {it.status_code for it in responses} <= {201, 409}
    assert len({it.json()["id"] for it in responses if it.status_code == 201}) == 1
    named = [it for it in (await alice.get("/api/agents")).json()["items"] if it["name"] == "One"]
    assert len(named) == 1


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
    shared = (await new_conversation(alice))["id"]
    await alice.post(f"/v1/conversations/{shared}/items", json={"items": [ITEM]})
    posts: dict[str, dict[str, Any]] = {
        "/api/keys": {"name": "Report", "scopes": ["read"]},
        "/api/conversations/{conversation_id}/shares": {},
    }
    assert posts.keys() == SHOWS_A_SECRET - INVITES
    for number, (route, body) in enumerate(posts.items()):
        path, headers = route.format(conversation_id=shared), {"Idempotency-Key": f"key-{number}"}
        first, second = [await alice.post(path, json=body, headers=headers) for _ in range(2)]
        assert (first.status_code, second.status_code) == (201, 409)
        assert "took effect" in second.json()["error"]["message"]
        assert len((await alice.get(path)).json()["items"]) == 1


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
