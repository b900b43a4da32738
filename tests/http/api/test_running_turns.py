"""The turns that run, for admins: seen without content, stopped with what they have said kept."""

import httpx

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import items, refusal
from tests.talking import JSON, Talk
from threadkeep.domain.ids import new_uuid
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

WORDS = "words-of-somebody"


async def test_admin_sees_and_stops_a_turn(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say(WORDS), Wait(gate)])
    conversation_id = await talk.conversation(name=WORDS)
    turn_id = await talk.begin(conversation_id, WORDS)
    async for event in talk.follow(turn_id):
        if event["type"] == "text":
            break
    listed = await talk.client.get("/api/admin/turns")
    assert WORDS not in listed.text
    (turn,) = listed.json()["items"]
    conversation = (await talk.client.get(f"/api/conversations/{conversation_id}")).json()
    assert turn == {
        "id": turn_id,
        "conversationId": conversation_id,
        "userId": "local",
        "agentId": conversation["agentId"],
        "nodeId": (await talk.app.services()).running_turns.node_id,
        "model": "default/scripted",
        "startedAt": turn["startedAt"],
        "state": "running",
        "agent": None,
        "codeVersion": None,
        "step": None,
        "stepSince": None,
        "worker": None,
        "waitsFor": None,
    }
    assert f'node="{turn["nodeId"]}"' in (await talk.client.get("/metrics")).text
    stopped = await talk.client.post(f"/api/admin/turns/{turn_id.upper()}/abort")
    assert stopped.json() == {"turnId": turn_id, "status": "GENERATION_ABORTED"}
    gate.open()
    reply = (await talk.messages(conversation_id))[-1]
    assert (reply["content"], reply["status"]) == (WORDS, "CANCELLED")
    assert (await talk.client.get("/api/admin/turns")).json()["items"] == []
    again = await talk.client.post(f"/api/admin/turns/{turn_id}/stop")
    assert again.json() == {"turnId": turn_id, "status": "IDLE"}
    # Who did it is written down, once.
    told = await items(talk.client, "/api/admin/audit")
    assert [entry["action"] for entry in told] == ["abort_turn", "create"]
    assert (told[0]["actorId"], told[0]["agentId"]) == ("local", conversation["agentId"])
    assert told[0]["details"] == {
        "turnId": turn_id, "conversationId": conversation_id, "userId": "local",
    }  # fmt: skip


async def test_admin_stops_a_turn_that_waits_for_its_user(talk: Talk, model: ScriptedModel):
    model.script([UseTool("ask_user", {"question": "Which?"})])
    conversation_id = await talk.titled_conversation(settings={"askUser": True})
    path = f"/api/conversations/{conversation_id}/messages?wait=true"
    waiting = await talk.client.post(path, json={"content": "Do it."}, headers=JSON)
    turn_id = waiting.json()["turnId"]
    assert (await talk.client.get(f"/api/turns/{turn_id}")).json()["waitsFor"] == "person"
    (listed,) = (await talk.client.get("/api/admin/turns?waitsFor=person")).json()["items"]
    assert (listed["id"], listed["state"], listed["waitsFor"]) == (turn_id, "waiting", "person")
    assert (await talk.client.get("/api/admin/turns?waitsFor=nothing")).json()["items"] == []
    stopped = await talk.client.post(f"/api/admin/turns/{turn_id}/stop")
    assert stopped.json() == {"turnId": turn_id, "status": "GENERATION_ABORTED"}
    assert (await talk.messages(conversation_id))[-1]["status"] == "CANCELLED"


async def test_turn_that_is_none_is_not_found(api: Api):
    admin = api.as_user("root", admin=True)
    for id_ in (new_uuid(), "none"):
        refusal(await admin.post(f"/api/admin/turns/{id_}/abort"), 404, "TURN_NOT_FOUND")


@ONLY_SQLITE
async def test_it_is_for_admins(alice: httpx.AsyncClient):
    refusal(await alice.get("/api/admin/turns"), 403, "FORBIDDEN")
    refusal(await alice.get("/api/admin/workers"), 403, "FORBIDDEN")
    refusal(await alice.post(f"/api/admin/turns/{new_uuid()}/abort"), 403, "FORBIDDEN")
