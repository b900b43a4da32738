"""Searching one's own messages and titles."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, new_agent, new_conversation, refusal, stored
from tests.making import keep_turn
from tests.talking import Talk
from threadkeep.domain.conversation import Conversation
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S, until


async def caught_up(api: Api) -> None:
    """Waits until everything that was said can be found."""
    history = (await api.app.services()).history
    await history.catch_up()
    while await api.store.history.behind(after=None, limit=1):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def said(api: Api, client: httpx.AsyncClient, *turns: tuple[str, str], **body: Any) -> Conversation:
    """A conversation in which this was asked and answered."""
    conversation = await stored(api, await new_conversation(client, **body))
    for asked, replied in turns:
        conversation = await keep_turn(api.store, conversation, asked, replied)
    return conversation


async def found(client: httpx.AsyncClient, q: str, **query: Any) -> list[Json]:
    response = await client.get("/api/search", params={"q": q, **query})
    assert response.status_code == 200, response.text
    return response.json()["items"]


def marked(hit: Json) -> list[str]:
    return [hit["snippet"][it["begin"] : it["end"]] for it in hit["highlights"]]


async def test_messages_are_found_in_chinese_and_english_with_their_words_marked(
    api: Api, alice: httpx.AsyncClient
):
    conversation = await said(
        api,
        alice,
        ("这份合同的违约金是多少？", "违约金为合同总金额的百分之二十。"),
        ("How do I terminate early?", "Termination needs thirty days of notice."),
    )
    await caught_up(api)
    hits = await found(alice, "违约金")
    assert [(hit["role"], marked(hit)) for hit in hits] == [("assistant", ["违约金"]), ("user", ["违约金"])]
    assert {hit["conversationId"] for hit in hits} == {conversation.id}
    assert [(hit["seq"], marked(hit)) for hit in await found(alice, "terminated")] == [
        (4, ["Termination"]),
        (3, ["terminate"]),
    ]
    assert [hit["seq"] for hit in await found(alice, "notice thirty")] == [4]
    assert await found(alice, "notice 合同") == []
    assert await found(alice, "，。") == []


async def test_titles_are_found_and_follow_their_changes(api: Api, alice: httpx.AsyncClient):
    conversation = await said(api, alice, ("q", "a"), title="Harbour fees")
    await caught_up(api)
    (hit,) = await found(alice, "harbour")
    assert (hit["messageId"], hit["title"], marked(hit)) == (None, "Harbour fees", ["Harbour"])
    await alice.patch(f"/api/conversations/{conversation.id}", json={"title": "Airport fees"})
    assert await found(alice, "harbour") == []  # at once, whatever else waits to be indexed
    assert len(await found(alice, "airport fees")) == 1


async def test_nobody_finds_what_others_said(api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient):
    agent_id = (await new_agent(alice, visibility="public"))["id"]
    await said(api, alice, ("alice asks about whales", "alice is told"), agent_id=agent_id)
    await said(api, bob, ("bob asks about whales", "bob is told"), agent_id=agent_id)
    await caught_up(api)
    assert [hit["snippet"] for hit in await found(alice, "whales")] == ["alice asks about whales"]
    assert [hit["snippet"] for hit in await found(bob, "whales")] == ["bob asks about whales"]
    assert await found(api.as_user("carol", admin=True), "whales") == []


async def test_deleted_conversation_is_not_found_until_it_is_restored(api: Api, alice: httpx.AsyncClient):
    conversation = await said(api, alice, ("a needle", "in hay"))
    await caught_up(api)
    path = f"/api/conversations/{conversation.id}"
    await alice.delete(path)
    assert await found(alice, "needle") == []
    await alice.post(f"{path}/restore")
    assert len(await found(alice, "needle")) == 1
    await alice.delete(f"{path}?purge=true")
    assert await found(alice, "needle") == []


async def test_conversation_deleted_before_it_could_be_found_is_found_after_its_restoring(
    api: Api, alice: httpx.AsyncClient
):
    conversation = await said(api, alice, ("a needle", "in hay"))
    path = f"/api/conversations/{conversation.id}"
    await alice.delete(path)
    await alice.post(f"{path}/restore")

    async def is_found() -> bool:
        return bool(await found(alice, "needle"))

    await until(is_found)


async def test_newest_come_first_and_pages_follow_each_other(api: Api, alice: httpx.AsyncClient):
    for number in range(5):
        await said(api, alice, (f"question {number}", f"lighthouse {number}"))
    await caught_up(api)
    first = (await alice.get("/api/search", params={"q": "lighthouse", "limit": 3})).json()
    assert [hit["snippet"] for hit in first["items"]] == ["lighthouse 4", "lighthouse 3", "lighthouse 2"]
    query = {"q": "lighthouse", "limit": 3, "cursor": first["nextCursor"]}
    rest = (await alice.get("/api/search", params=query)).json()
    assert [hit["snippet"] for hit in rest["items"]] == ["lighthouse 1", "lighthouse 0"]
    assert rest["nextCursor"] is None


async def test_hits_have_agent_and_time_and_can_be_limited_to_them(api: Api, alice: httpx.AsyncClient):
    harbour, airport = (await new_agent(alice))["id"], (await new_agent(alice))["id"]
    for agent_id in (harbour, airport):
        await said(api, alice, ("Where is the lighthouse?", "Here."), agent_id=agent_id)
    await caught_up(api)
    newest, oldest = await found(alice, "lighth")
    assert (newest["agentId"], oldest["agentId"]) == (airport, harbour)
    assert await found(alice, "lighth", agentId=harbour.upper()) == [oldest]
    assert await found(alice, "lighth", agentId="-" * 36) == []
    assert await found(alice, "lighth", **{"from": "2020-01-01T00:00:00Z", "limit": 1}) == [newest]
    assert await found(alice, "lighth", to="2020-01-01T00:00:00+08:00") == []


@ONLY_SQLITE
async def test_query_is_needed(alice: httpx.AsyncClient):
    for query in ({}, {"q": ""}, {"q": "x" * 501}):
        refusal(await alice.get("/api/search", params=query), 422, "INVALID_REQUEST", "q")
    for name, value in (("agentId", "x"), ("from", "today"), ("to", "2026-01-01")):
        refusal(await alice.get("/api/search", params={"q": "a", name: value}), 422, "INVALID_REQUEST", name)


async def test_turn_can_be_found_soon_after_it_has_ended(talk: Talk, model: ScriptedModel):
    model.script([Say("Ask the harbour master.")], [Say("Ask the pilot.")])
    conversation_id = await talk.conversation()
    await talk.client.patch(f"/api/conversations/{conversation_id}", json={"title": "Mooring"})
    await talk.ask(conversation_id, "Where may I moor?")

    async def hits(q: str) -> list[Json]:
        return (await talk.client.get("/api/search", params={"q": q})).json()["items"]

    async def is_found(q: str) -> bool:
        return bool(await hits(q))

    await until(lambda: is_found("harbour"))
    # A reply that is regenerated is found in its old form too, which is marked.
    path = f"/api/conversations/{conversation_id}/regenerate?wait=true"
    await talk.client.post(path, headers={"Accept": "application/json"})
    await until(lambda: is_found("pilot"))
    assert [it["onPath"] for q in ("harbour", "pilot") for it in await hits(q)] == [False, True]


async def test_what_came_without_a_turn_of_ours_can_be_found_soon_as_well(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice, title="Mooring")
    run = {"runId": "r", "at": 1}
    started = {**run, "id": "1", "type": "ExecutionStarted", "input": "Where is the lighthouse?"}
    ended = {**run, "id": "2", "type": "ExecutionCompleted", "output": "Beyond the pier."}
    path = f"/api/conversations/{conversation['id']}"
    assert (await alice.post(f"{path}/executions", json={"events": [started, ended]})).is_success
    notice = {"agentId": conversation["agentId"], "userId": "alice", "priority": "P1"}
    told = await alice.post("/api/briefings", json={**notice, "title": "Gale", "summary": "No ferry today."})
    card = await alice.post(f"/api/briefings/{told.json()['id']}/actions/start_conversation")

    async def soon(q: str) -> Json:
        async with asyncio.timeout(PATIENCE_S):
            while not (hits := await found(alice, q)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return hits[0]

    assert (await soon("mooring"))["messageId"] is None
    assert [(await soon(q))["role"] for q in ("lighthouse", "pier")] == ["user", "assistant"]
    hit = await soon("gale ferry")
    assert (hit["messageId"], hit["role"]) == (card.json()["messageId"], "system")
    assert (hit["snippet"], marked(hit)) == ("Gale\nNo ferry today.", ["Gale", "ferry"])
    await alice.patch(path, json={"title": "Anchorage"})
    assert (await soon("anchorage"))["conversationId"] == conversation["id"]
    assert await found(alice, "mooring") == []


@pytest.mark.parametrize("q", ["'", '"', '" OR "', "a:b*", "x & !y", "NEAR(a b)", "\\", "%", "1x2"])
async def test_signs_of_query_languages_mean_nothing(api: Api, alice: httpx.AsyncClient, q: str):
    await said(api, alice, ("plain words", "more words"))
    await caught_up(api)
    assert await found(alice, q) == []
