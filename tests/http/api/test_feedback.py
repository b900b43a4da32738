"""Feedback over HTTP: users rate answers, owners read what users share."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal, stored
from tests.making import keep_begun, keep_turn
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.feedback import MOST_NOTE_CHARACTERS
from threadkeep.domain.ids import new_uuid

FOREIGN = "bob-only-says-this"


async def talked(api: Api, client: httpx.AsyncClient, agent_id: str, asked: str = "Why?") -> Conversation:
    conversation = await stored(api, await new_conversation(client, agent_id))
    return await keep_turn(api.store, conversation, asked, f"Because: {asked}")


async def rate(
    client: httpx.AsyncClient, conversation: Conversation, rating: str | None = "up", **body: Any
) -> httpx.Response:
    path = f"/api/messages/{conversation.tip_id}/feedback"
    return await client.post(path, json={"rating": rating, **body})


async def answer(client: httpx.AsyncClient, conversation: Conversation) -> Json:
    detail = (await client.get(f"/api/conversations/{conversation.id}")).json()
    listed = await items(client, f"/api/conversations/{conversation.id}/messages")
    assert detail["messages"] == listed
    return detail["messages"][-1]


async def test_rating_is_shown_with_the_answer_replaced_and_removed(api: Api, alice: httpx.AsyncClient):
    conversation = await talked(api, alice, (await new_agent(alice))["id"])
    assert "feedback" not in await answer(alice, conversation)
    first = await rate(alice, conversation, "down", note="Wrong year. 年份错了", shareText=True)
    assert first.status_code == 200
    assert first.json() == {"rating": "down", "note": "Wrong year. 年份错了", "shareText": True}
    assert (await answer(alice, conversation))["feedback"] == first.json()
    assert (await rate(alice, conversation, "up")).status_code == 200
    assert (await answer(alice, conversation))["feedback"] == {"rating": "up", "note": "", "shareText": False}
    for _ in range(2):
        assert (await alice.delete(f"/api/messages/{conversation.tip_id}/feedback")).status_code == 204
    assert "feedback" not in await answer(alice, conversation)
    await rate(alice, conversation, "up")
    for _ in range(2):
        assert (await rate(alice, conversation, None)).status_code == 204
    assert "feedback" not in await answer(alice, conversation)


async def test_two_tabs_at_once_leave_one_rating(api: Api, alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    conversation = await talked(api, alice, agent["id"])
    responses = await asyncio.gather(*(rate(alice, conversation, it) for it in ("up", "down") * 4))
    assert {it.status_code for it in responses} == {200}
    (kept,) = await items(alice, f"/api/agents/{agent['id']}/feedback")
    assert kept["rating"] == (await answer(alice, conversation))["feedback"]["rating"]


@ONLY_SQLITE
async def test_only_finished_answers_of_ones_own_are_rated(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    conversation = await talked(api, alice, agent["id"])
    for message_id in (conversation.tip_id, new_uuid(), "no-uuid"):
        response = await bob.post(f"/api/messages/{message_id}/feedback", json={"rating": "up"})
        refusal(response, 404, "MESSAGE_NOT_FOUND")
    question = (await alice.get(f"/api/conversations/{conversation.id}")).json()["messages"][0]
    path = f"/api/messages/{question['id']}/feedback"
    refusal(await alice.post(path, json={"rating": "up"}), 422, "INVALID_REQUEST", "messageId")
    begun = conversation.begin_turn("And?", conversation.updated_at + 1)
    await keep_begun(api.store, begun)
    path = f"/api/messages/{begun.assistant_message.id}/feedback"
    refusal(await alice.post(path, json={"rating": "up"}), 422, "INVALID_REQUEST", "messageId")


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"rating": "up", "note": "x" * (MOST_NOTE_CHARACTERS + 1)}, "note"),
        ({"rating": "up", "note": "a\x00b"}, "note"),
        ({"rating": "meh"}, "rating"),
        ({}, "rating"),
        ({"rating": "up", "shareText": "yes"}, "shareText"),
    ],
)
async def test_bad_rating_is_refused_and_changes_nothing(
    api: Api, alice: httpx.AsyncClient, body: Json, param: str
):
    conversation = await talked(api, alice, (await new_agent(alice))["id"])
    response = await alice.post(f"/api/messages/{conversation.tip_id}/feedback", json=body)
    error = refusal(response, 422, "INVALID_REQUEST", response.json()["error"].get("param"))
    assert error.get("param", param) == param
    assert "feedback" not in await answer(alice, conversation)


async def test_rating_goes_with_a_deleted_conversation(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    conversation = await talked(api, bob, agent["id"])
    await rate(bob, conversation, shareText=True)
    await bob.delete(f"/api/conversations/{conversation.id}")
    refusal(await rate(bob, conversation), 404, "MESSAGE_NOT_FOUND")
    assert await items(alice, f"/api/agents/{agent['id']}/feedback") == []
    await bob.post(f"/api/conversations/{conversation.id}/restore")
    assert len(await items(alice, f"/api/agents/{agent['id']}/feedback")) == 1
    await bob.delete(f"/api/conversations/{conversation.id}?purge=true")
    assert await items(alice, f"/api/agents/{agent['id']}/feedback") == []


async def test_owner_lists_ratings_and_reads_only_what_users_share(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    path = f"/api/agents/{agent['id']}/feedback"
    secret, shared = [await talked(api, bob, agent["id"], f"{FOREIGN} {it}") for it in ("secret", "shared")]
    own = await talked(api, alice, agent["id"], "Mine?")
    await rate(bob, secret, "down", note="No.")
    await rate(bob, shared, "up", shareText=True)
    await rate(alice, own)
    mine, theirs, hidden = await items(alice, path, limit=2)
    assert (mine["own"], mine["question"], mine["answer"]) == (True, "Mine?", "Because: Mine?")
    assert (theirs["own"], theirs["question"]) == (False, f"{FOREIGN} shared")
    assert theirs["turnId"]
    assert hidden.keys() == {
        "messageId", "rating", "note", "shareText", "model", "cost", "answeredAt", "ratedAt", "own",
    }  # fmt: skip
    assert (hidden["rating"], hidden["note"], hidden["model"]) == ("down", "No.", "scripted")
    assert [it["rating"] for it in await items(alice, path, rating="down")] == ["down"]
    assert await items(alice, path, model="another") == []
    assert await items(alice, path, to=hidden["ratedAt"]) == []
    refusal(await alice.get(path, params={"from": "now"}), 422, "INVALID_REQUEST", "from")
    refusal(await bob.get(path), 403, "FORBIDDEN")
    admin = api.as_user("root", admin=True)
    found = await items(admin, path)
    assert len(found) == 3
    assert not any("answer" in it or "question" in it or "turnId" in it for it in found)


@ONLY_SQLITE
async def test_texts_are_for_the_agents_owner_of_today(api: Api, bob: httpx.AsyncClient):
    """An agent without an owner is the admins'; one that has moved is its new owner's."""
    admin = api.as_user("root", admin=True)
    (default,) = (it for it in await items(bob, "/api/agents") if it["isDefault"])
    conversation = await talked(api, bob, default["id"], "Shared?")
    await rate(bob, conversation, shareText=True)
    (found,) = await items(admin, f"/api/agents/{default['id']}/feedback")
    assert found["question"] == "Shared?"


async def test_fork_carries_no_rating(api: Api, alice: httpx.AsyncClient):
    conversation = await talked(api, alice, (await new_agent(alice))["id"])
    await rate(alice, conversation, "up")
    path = f"/api/conversations/{conversation.id}/fork"
    fork = await alice.post(path, json={"messageId": conversation.tip_id})
    assert fork.status_code == 201, fork.text
    copies = await items(alice, f"/api/conversations/{fork.json()['id']}/messages")
    assert [it for it in copies if "feedback" in it] == []
