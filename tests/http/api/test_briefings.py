"""Briefings over HTTP: sent by agents' owners, read by users, talked about once."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import items, new_agent, refusal, stored
from tests.making import NOW, keep_begun, keep_ended, said
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import MessageStatus

BODY = {"title": "Review耗时超标", "summary": "中位耗时30小时", "priority": "P1"}


async def send(client: httpx.AsyncClient, agent_id: str, user: str = "alice", **more: Any) -> dict[str, Any]:
    response = await client.post("/api/briefings", json={**BODY, "agentId": agent_id, "userId": user, **more})
    assert response.status_code == 201, response.text
    return response.json()


@pytest.fixture(autouse=True)
async def known(alice: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    """Both have signed in before."""
    for client in (alice, bob):
        await client.get("/api/me")


async def start(client: httpx.AsyncClient, briefing: dict[str, Any]) -> dict[str, str]:
    response = await client.post(f"/api/briefings/{briefing['id']}/actions/start_conversation")
    assert response.status_code == 200, response.text
    return response.json()


async def test_briefing_is_sent_listed_and_read(alice: httpx.AsyncClient, bob: httpx.AsyncClient):
    agent = await new_agent(alice, visibility="public")
    extra = {"data": {"hours": 30}, "actions": [{"type": "start_conversation", "label": "继续对话"}]}
    first = await send(alice, agent["id"], "bob", **extra)
    second = await send(alice, agent["id"], "bob", title="Second")
    assert {name: first[name] for name in (*BODY, *extra)} == {**BODY, **extra}
    assert (first["agentId"], first["domainId"], first["userId"]) == (agent["id"], agent["id"], "bob")
    assert (first["readAt"], first["messageId"]) == (None, None)
    assert await items(bob, "/api/briefings") == [second, first]
    assert await items(alice, "/api/briefings") == []
    read = (await bob.post(f"/api/briefings/{first['id']}/read")).json()
    assert read["readAt"]
    assert (await bob.post(f"/api/briefings/{first['id']}/read")).json() == read
    assert await items(bob, "/api/briefings", unread="true") == [second]
    assert (await bob.delete(f"/api/briefings/{first['id']}")).status_code == 204
    refusal(await bob.delete(f"/api/briefings/{first['id']}"), 404, "BRIEFING_NOT_FOUND")
    assert await items(bob, "/api/briefings") == [second]


async def test_briefing_for_somebody_who_never_signed_in_is_refused_and_leaves_nothing(
    api: Api, alice: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    admin = api.as_user("root", admin=True)
    body = {**BODY, "agentId": agent["id"], "userId": "nobody", "priority": "P0"}
    for client in (alice, admin):
        refusal(await client.post("/api/briefings", json=body), 404, "USER_NOT_FOUND", "userId")
    assert UserId("nobody") not in [it async for it in api.store.users.ids()]


async def test_owner_has_only_so_many_unread_briefings_with_one_user(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.services.briefings.MOST_UNREAD", 3)
    agents = [(await new_agent(alice, visibility="public"))["id"] for _ in range(2)]
    first = await send(alice, agents[0], "bob")
    one_more = {**BODY, "agentId": agents[1], "userId": "bob"}
    responses = await asyncio.gather(*(alice.post("/api/briefings", json=one_more) for _ in range(4)))
    assert sorted(it.status_code for it in responses) == [201, 201, 429, 429]
    refused = next(it for it in responses if it.status_code == 429)
    assert refusal(refused, 429, "RATE_LIMITED")["details"] == {"limit": "unreadBriefings", "most": 3}
    assert int(refused.headers["retry-after"]) > 0
    await send(alice, agents[1], "alice")  # another's are counted for themselves
    await bob.post(f"/api/briefings/{first['id']}/read")
    await send(alice, agents[1], "bob")


async def test_private_agent_sends_briefings_to_its_owner_only(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice)
    body = {**BODY, "agentId": agent["id"], "userId": "bob"}
    refusal(await alice.post("/api/briefings", json=body), 422, "INVALID_REQUEST", "userId")
    assert await items(bob, "/api/briefings") == []
    assert await start(alice, await send(alice, agent["id"]))


async def test_agent_made_private_takes_no_card_but_keeps_those_it_has(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
):
    agent = await new_agent(alice, visibility="public")
    first, second = [await send(alice, agent["id"], "bob") for _ in range(2)]
    started = await start(bob, first)
    await alice.patch(f"/api/agents/{agent['id']}", json={"visibility": "private"})
    assert await start(bob, first) == started
    late = await bob.post(f"/api/briefings/{second['id']}/actions/start_conversation")
    refusal(late, 404, "AGENT_NOT_FOUND")


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"title": " "}, "title"),
        ({"title": "x" * 501}, "title"),
        ({"summary": ""}, "summary"),
        ({"summary": "x" * 20_001}, "summary"),
        ({"priority": "P4"}, "priority"),
        ({"userId": " "}, "userId"),
        ({"userId": "x" * 256}, "userId"),
        ({"data": {"a": "x" * 70_000}}, "data"),
        ({"actions": [{"type": "x"}] * 21}, "actions"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_malformed_briefing_is_refused(alice: httpx.AsyncClient, change: dict[str, Any], param: str):
    agent = await new_agent(alice)
    body = {**BODY, "agentId": agent["id"], "userId": "alice", **change}
    refusal(await alice.post("/api/briefings", json=body), 422, "INVALID_REQUEST", param)
    assert await items(alice, "/api/briefings") == []


async def test_card_comes_into_the_main_conversation_once(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    briefing = await send(alice, agent["id"])
    started = [await start(alice, briefing) for _ in range(3)]
    assert started[0] == started[1] == started[2]
    assert started[0]["conversation_id"] == started[0]["conversationId"]
    conversation = (await alice.get(f"/api/conversations/{started[0]['conversationId']}")).json()
    (card,) = conversation["messages"]
    assert (conversation["isMain"], card["id"], card["role"]) == (True, started[0]["messageId"], "system")
    assert (card["contentType"], card["content"]["title"]) == ("briefing_card", BODY["title"])
    (listed,) = await items(alice, "/api/briefings")
    assert (listed["messageId"], bool(listed["readAt"])) == (card["id"], True)


async def test_card_comes_once_although_many_click_at_once(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    briefings = [await send(alice, agent["id"], title=f"B{number}") for number in range(2)]
    started = await asyncio.gather(*(start(alice, briefing) for briefing in briefings * 2))
    assert started[0] == started[2]
    assert started[1] == started[3]
    messages = await items(alice, f"/api/conversations/{started[0]['conversationId']}/messages")
    assert sorted(it["content"]["title"] for it in messages) == ["B0", "B1"]


async def test_card_comes_into_the_new_conversation_after_the_old_was_deleted(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    briefing = await send(alice, agent["id"])
    for purge in ("", "?purge=true"):
        first = await start(alice, briefing)
        assert (await alice.delete(f"/api/conversations/{first['conversationId']}{purge}")).status_code == 204
        second = await start(alice, briefing)
        assert second["conversationId"] != first["conversationId"]
        assert len(await items(alice, f"/api/conversations/{second['conversationId']}/messages")) == 1


async def test_card_stays_when_its_briefing_is_deleted(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    briefing = await send(alice, agent["id"])
    started = await start(alice, briefing)
    await alice.delete(f"/api/briefings/{briefing['id']}")
    assert len(await items(alice, f"/api/conversations/{started['conversationId']}/messages")) == 1
    response = await alice.post(f"/api/briefings/{briefing['id']}/actions/start_conversation")
    refusal(response, 404, "BRIEFING_NOT_FOUND")


async def test_briefing_of_an_agent_that_is_gone_cannot_be_talked_about(alice: httpx.AsyncClient):
    agent = await new_agent(alice)
    briefing = await send(alice, agent["id"])
    await alice.delete(f"/api/agents/{agent['id']}")
    response = await alice.post(f"/api/briefings/{briefing['id']}/actions/start_conversation")
    refusal(response, 404, "AGENT_NOT_FOUND")


async def test_card_that_comes_while_a_turn_ends_leaves_the_conversation_free(
    api: Api, alice: httpx.AsyncClient
):
    agent = await new_agent(alice)
    briefing = await send(alice, agent["id"])
    main = (await alice.put(f"/api/agents/{agent['id']}/conversation")).json()
    begun = (await stored(api, main)).begin_turn("?", NOW)
    await keep_begun(api.store, begun)
    grown, card = begun.conversation.add_card(
        (await api.store.briefings.page(begun.conversation.user_id, unread=True, before=None, limit=1))[0],
        NOW,
    )
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said("!"), NOW)
    await keep_ended(api.store, begun.conversation.end_turn(begun.turn, reply, NOW))
    await api.store.messages.add_card(grown, card)  # prepared while the turn ran
    after = (await alice.get(f"/api/conversations/{main['id']}")).json()
    assert (after["activeTurnId"], after["messageCount"]) == (None, 3)
    assert briefing["id"] == after["messages"][-1]["content"]["briefingId"]
