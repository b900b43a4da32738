"""`onDisconnect`: whether a turn ends when nobody follows it any more."""

import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import JSON, Talk, parse
from threadkeep.runtime import followers, heartbeat
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, until


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn ends as soon as its last follower has left, unless it has just begun."""
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.02)
    monkeypatch.setattr(followers, "SURE_S", 0.0)
    monkeypatch.setattr(followers, "BEGUN_S", 60.0)


async def test_closed_stream_stops_the_turn_and_keeps_its_text(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    model.script([Say("One. "), Wait(Gate())], [Say("Two.")])
    conversation = await talk.titled_conversation()
    path = f"/api/conversations/{conversation}/messages"
    body = {"content": "Count.", "onDisconnect": "stop"}
    async with talk.client.stream("POST", path, json=body) as response:
        async for event in parse(response):
            if event["type"] == "text":
                break
    monkeypatch.setattr(followers, "ABSENT_S", 0.0)
    monkeypatch.setattr(followers, "BEGUN_S", 0.0)
    assert await model.requests[0].until_over() == "disconnected"
    turn = response.headers["location"]

    async def is_stopped() -> bool:
        return (await talk.client.get(turn)).json()["status"] == "CANCELLED"

    await until(is_stopped)
    reply = (await talk.messages(conversation))[-1]
    assert (reply["status"], reply["content"]) == ("CANCELLED", "One. ")
    assert (await talk.ask(conversation, "Go on."))["content"] == "Two."


@ONLY_SQLITE
async def test_turn_goes_on_without_followers_by_default(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(followers, "ABSENT_S", 0.0)
    monkeypatch.setattr(followers, "BEGUN_S", 0.0)
    gate = Gate()
    model.script([Say("One. "), Wait(gate), Say("Two.")])
    conversation = await talk.titled_conversation()
    path = f"/api/conversations/{conversation}/messages"
    async with talk.client.stream("POST", path, json={"content": "Count."}) as response:
        await anext(parse(response))
    await gate.reached()
    gate.open()
    turn_id = response.headers["location"].rpartition("/")[2]
    assert (await talk.events(turn_id))[-1]["status"] == "COMPLETED"


@ONLY_SQLITE
async def test_response_without_a_stream_has_nobody_to_leave(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    path = f"/api/conversations/{conversation}/messages"
    body = {"content": "Count.", "onDisconnect": "stop"}
    for query, headers, more in [
        ("", JSON, {}),
        ("?wait=true", {}, {}),
        ("", {}, {"whenBusy": "queue"}),
        ("", {}, {"whenBusy": "steer"}),
    ]:
        refused = await talk.client.post(path + query, json=body | more, headers=headers)
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, "onDisconnect"), more
    assert model.requests == []


@ONLY_SQLITE
async def test_held_messages_go_first_so_nobody_would_follow_this_one(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One."), Wait(gate)])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation)
    await gate.reached()
    path = f"/api/conversations/{conversation}/messages"
    await talk.client.post(path, json={"content": "Two?", "whenBusy": "queue"}, headers=JSON)
    await talk.client.post(f"/api/conversations/{conversation}/abort")
    refused = await talk.client.post(path, json={"content": "Three?", "onDisconnect": "stop"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "onDisconnect")
