"""Documents in conversations: 001-R2, CONV-008, CONV-009 and CONV-011."""

from typing import Any

import pytest

from tests.retrieval.files import CONTRACT, make_contract
from tests.retrieval.sending import send_and_read
from tests.talking import Talk
from threadkeep.testing import Say, ScriptedModel, UseTool

QUESTION = "合同违约条款是什么？"


async def domain_with_contract(talk: Talk, **settings: Any) -> str:
    """A domain with one document."""
    made = await talk.client.post("/api/domains", json={"name": "法律顾问", "settings": settings})
    domain_id = made.json()["id"]
    (document,) = await send_and_read(talk.client, domain_id, **{CONTRACT: make_contract()})
    assert document["status"] == "ready", document
    return domain_id


async def ask(talk: Talk, domain_id: str, question: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A question in a new conversation: the finished reply and the turn's events."""
    # With a title of its own, so that the model is not asked for one.
    started = await talk.client.post(f"/api/domains/{domain_id}/conversations", json={"title": "咨询"})
    reply = await talk.ask(started.json()["id"], question)
    return reply, await talk.events(reply["turnId"])


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def offered(model: ScriptedModel) -> dict[str, Any]:
    """The tools of the first request, by name."""
    return {tool["function"]["name"]: tool["function"] for tool in model.requests[0].body.get("tools", ())}


@pytest.mark.requirement("CONV-009-S1", "CONV-011-S1")
async def test_model_searches_the_documents_and_replies_from_them(talk: Talk, model: ScriptedModel):
    domain_id = await domain_with_contract(talk)
    model.script(
        [UseTool("search_documents", {"query": "合同违约条款"})],
        [Say("违约金为合同总金额的百分之二十。[1]")],
    )
    # When a user asks what stands in it
    reply, events = await ask(talk, domain_id, QUESTION)
    # Then the model searches: the system offered the tool, the model called it
    assert "search_documents" in offered(model)
    (called,) = of_type(events, "tool_call")
    assert (called["server"], called["tool_name"]) == ("retriever", "search_documents")
    told = model.requests[1].body["messages"][-1]
    assert told["role"] == "tool"
    assert "[1]" in told["content"] and "违约金" in told["content"]
    # And it answers from what it found, with a citation to the right page
    assert reply["content"] == "违约金为合同总金额的百分之二十。[1]"
    first = reply["citations"][0]
    assert (first["index"], first["fileName"], first["page"]) == (1, CONTRACT, 2)
    assert "违约金" in first["snippet"]
    assert (reply["toolCalls"][0]["server"], reply["toolCalls"][0]["status"]) == ("retriever", "ok")


@pytest.mark.requirement("CONV-008-S2")
async def test_retriever_is_there_where_the_domain_has_documents(talk: Talk, model: ScriptedModel):
    without = (await talk.client.post("/api/domains", json={"name": "空"})).json()["id"]
    model.script([Say("Nothing to search.")])
    await ask(talk, without, QUESTION)
    assert "search_documents" not in offered(model)
    model.requests.clear()
    # Given a domain with a document that was read
    domain_id = await domain_with_contract(talk, retrievalTopK=1, retrievalThreshold=0.05)
    model.script([UseTool("search_documents", {"query": "合同"})], [Say("!")])
    reply, _ = await ask(talk, domain_id, QUESTION)
    # Then the session has retrieval, and the model can call its tool
    assert offered(model)["search_documents"]["parameters"]["required"] == ["query"]
    servers = (await talk.client.get(f"/api/domains/{domain_id}")).json()["mcpServers"]
    assert {it["name"]: it["status"] for it in servers}["retriever"] == "ready"
    # And it has the domain's limits
    assert len(reply["citations"]) == 1
    for settings, expected in (({"retrievalTopK": 3}, 3), ({"retrievalThreshold": 1.0}, 0)):
        await talk.client.patch(f"/api/domains/{domain_id}", json={"settings": settings})
        model.script([UseTool("search_documents", {"query": "合同"})], [Say("!")])
        reply, _ = await ask(talk, domain_id, QUESTION)
        assert len(reply["citations"]) == expected


@pytest.mark.requirement("001-R2-S1")
async def test_retrieval_event_comes_before_the_reply(talk: Talk, model: ScriptedModel):
    domain_id = await domain_with_contract(talk, retrievalMode="auto")
    model.script([Say("百分之二十。[1]")])
    reply, events = await ask(talk, domain_id, QUESTION)
    # The event comes before the reply
    kinds = [event["type"] for event in events]
    assert kinds.index("retrieval") < kinds.index("iteration_start")
    (found,) = of_type(events, "retrieval")
    # It has all that a card shows: query, passages, sources, scores
    assert found["query"] == QUESTION
    hit = found["hits"][0]
    assert (hit["source"], hit["page"]) == (CONTRACT, 2)
    assert "违约金" in hit["text"]
    assert 0 < hit["score"] <= 1
    # The model was given what was found, and the reply cites it.
    asked = model.requests[0].body["messages"][-1]
    assert asked["role"] == "user"
    assert f"[1] {CONTRACT}, page 2" in asked["content"]
    assert asked["content"].endswith(QUESTION)
    assert (reply["citations"][0]["fileName"], reply["citations"][0]["page"]) == (CONTRACT, 2)


@pytest.mark.requirement("001-R2-S2")
async def test_nothing_found_is_no_event(talk: Talk, model: ScriptedModel):
    domain_id = await domain_with_contract(talk, retrievalMode="auto")
    # Nothing was found
    model.script([Say("Sunny.")])
    reply, events = await ask(talk, domain_id, "Quelle heure est-il à Bruxelles ?")
    assert of_type(events, "retrieval") == []
    assert reply["citations"] == []
    # Nothing was searched
    await talk.client.patch(f"/api/domains/{domain_id}", json={"settings": {"retrievalMode": "tool"}})
    model.script([Say("I did not look.")])
    reply, events = await ask(talk, domain_id, QUESTION)
    assert of_type(events, "retrieval") == []
    # A tool that finds nothing gives no event either.
    model.script([UseTool("search_documents", {"query": "zebra crossing"})], [Say("Nothing.")])
    reply, events = await ask(talk, domain_id, QUESTION)
    assert of_type(events, "retrieval") == []
    assert of_type(events, "tool_result")[0]["status"] == "ok"
