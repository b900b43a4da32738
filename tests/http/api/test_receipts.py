"""The receipt of a turn: what the model was sent, byte for byte."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, SECRET
from tests.http.calls import refusal
from tests.talking import Talk, talking
from threadkeep import Settings
from threadkeep.context.request import rebuild_request
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.domain.user import User
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.openai import openai_body
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Say, ScriptedModel, Status, Think

PROMPT = "Be brief.\n用中文回答。"


async def context(talk: Talk, turn_id: str) -> dict[str, Any]:
    response = await talk.client.get(f"/api/turns/{turn_id}/context")
    assert response.status_code == 200, response.text
    return response.json()


async def rebuilt(talk: Talk, turn_id: str) -> bytes:
    """The request's body once more, from nothing but what is stored."""
    turn = await talk.store.turns.get(UserId("local"), TurnId(turn_id))
    assert turn
    found = await talk.store.receipts.get(turn.conversation_id, turn.id)
    assert found
    request = rebuild_request(*found)
    gateway, _, name = request.model.partition("/")
    assert gateway == "default"
    return encode(openai_body(replace(request, model=name), name))


@pytest.mark.parametrize("thoughts", [False, True])
async def test_request_is_rebuilt_byte_for_byte(talk: Talk, model: ScriptedModel, thoughts: bool):
    model.otherwise = [Think("想一想"), Say('因为\n"so".')]
    settings = {"temperature": 0.5, "maxTokens": 100, "contextMessages": 3, "contextThoughts": thoughts}
    conversation = await talk.titled_conversation(systemPrompt=PROMPT, model="scripted-2", settings=settings)
    turns = [(await talk.ask(conversation, f"第{n}?"))["turnId"] for n in range(3)]
    regenerated = await talk.client.post(
        f"/api/conversations/{conversation}/regenerate?wait=true", headers={"Accept": "application/json"}
    )
    await talk.client.patch(f"/api/agents/{(await agent_of(talk, conversation))}", json={"systemPrompt": ""})
    turns += [regenerated.json()["turnId"], (await talk.ask(conversation, "Last?"))["turnId"]]
    assert len(model.requests) == 5
    assert ("想一想".encode() in model.requests[-1].content) is thoughts
    for turn_id, request in zip(turns, model.requests, strict=True):
        assert await rebuilt(talk, turn_id) == request.content


async def agent_of(talk: Talk, conversation: str) -> str:
    return (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]


async def test_receipt_tells_what_was_sent(talk: Talk, model: ScriptedModel):
    conversation = await talk.conversation(systemPrompt=PROMPT, settings={"temperature": 0.5})
    reply = await talk.ask(conversation)
    shown = await context(talk, reply["turnId"])
    component, role = shown.pop("components")
    assert (role["name"], "promptx_action" in role["text"]) == ("role", True)
    assert len(component.pop("sha256")) == 64
    assert component == {
        "name": "systemPrompt",
        "length": len(PROMPT),
        "truncated": False,
        "text": PROMPT,
    }
    assert shown.pop("tokenEstimate") > 5
    assert len(shown.pop("sha256")) == 64
    asked = (await talk.messages(conversation))[0]
    assert shown == {
        "turnId": reply["turnId"],
        "model": "default/scripted",
        "summary": None,
        "messageIds": [asked["id"]],
        "thoughts": False,
        "tools": ["make_chart", "promptx_action", "promptx_recall", "promptx_remember", "recall_result"],
        "temperature": 0.5,
        "maxTokens": None,
        "droppedMessages": 0,
        "prefixShare": None,
        "shortenedResults": [],
        "files": [],
    }


async def test_receipt_is_kept_although_the_model_fails(talk: Talk, model: ScriptedModel):
    model.script([Status(401, "no")])
    conversation = await talk.conversation(systemPrompt=PROMPT)
    turn_id = await talk.begin(conversation)
    await talk.events(turn_id)
    assert (await context(talk, turn_id))["components"][0]["text"] == PROMPT
    assert await rebuilt(talk, turn_id) == model.requests[0].content


async def test_purged_conversation_leaves_no_text_of_its_receipts(talk: Talk):
    gone, stays = [await talk.conversation(systemPrompt=PROMPT) for _ in range(2)]
    for conversation in (gone, stays):
        await talk.ask(conversation, f"The secret is {conversation}.")
        kept = await talk.ask(conversation, "Next")
    await talk.client.delete(f"/api/conversations/{gone}?purge=true")
    assert await talk.store.receipts.forget_texts() == 0
    assert (await context(talk, kept["turnId"]))["components"][0]["text"] == PROMPT


@ONLY_SQLITE
async def test_prompt_is_for_the_agents_owner_and_admins_only(
    database_url: str, model: ScriptedModel, tmp_path: Path
):
    settings = Settings.load(
        {},
        data=tmp_path / "data",
        database_url=database_url,
        jwt_secret=SECRET,
        gateway="openai",
        gateway_url=model.url,
    )
    async with talking(settings) as running:

        def as_user(name: str) -> Talk:
            token = issue_token(SECRET, User(UserId(name)), 600)
            client = httpx.AsyncClient(
                base_url=running.url, headers={"Authorization": f"Bearer {token}"}, timeout=30
            )
            return Talk(running.app, running.store, running.url, client)

        alice, bob = as_user("alice"), as_user("bob")
        agent = await alice.client.post(
            "/api/agents", json={"name": "A", "systemPrompt": PROMPT, "visibility": "public"}
        )
        turns: dict[str, str] = {}
        for talk in (alice, bob):
            started = await talk.client.post(f"/api/agents/{agent.json()['id']}/conversations")
            turns[started.json()["userId"]] = (await talk.ask(started.json()["id"]))["turnId"]
        hers, his = await context(alice, turns["alice"]), await context(bob, turns["bob"])
        assert hers["components"][0]["text"] == PROMPT
        assert "text" not in his["components"][0]
        assert hers["components"][0]["sha256"] == his["components"][0]["sha256"]
        for talk, turn_id in ((alice, turns["bob"]), (bob, turns["alice"])):
            response = await talk.client.get(f"/api/turns/{turn_id}/context")
            refusal(response, 404, "TURN_NOT_FOUND")
        for talk in (alice, bob):
            await talk.client.aclose()


@pytest.mark.parametrize("turn_id", ["0190a3b0-0000-7000-8000-000000000000", "no-uuid"])
async def test_unknown_turn_has_no_receipt(talk: Talk, turn_id: str):
    refusal(await talk.client.get(f"/api/turns/{turn_id}/context"), 404, "TURN_NOT_FOUND")
