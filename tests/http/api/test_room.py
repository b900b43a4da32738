"""A user without room: the next thing is refused, and what has begun is kept whole."""

from collections.abc import Mapping

import httpx
import pytest

from tests.http.api.test_approvals import asking, decide, reply, server, waiting
from tests.http.api.test_queue import detail, hold, post, queued, said, send_held, until_idle
from tests.protocols.test_refusals import leave_room
from tests.talking import JSON, Talk
from threadkeep.domain.ids import UserId
from threadkeep.testing import Gate, Say, ScriptedModel, ToolServer, UseTool, Wait

__all__ = ["server"]

LOCAL = UserId("local")


def refused(response: httpx.Response) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (422, "LIMIT_NOT_ALLOWED"), response.text
    assert "THREADKEEP_USER_BYTES" in error["message"]


async def size(talk: Talk) -> int:
    return await talk.store.stored_bytes.of_user(LOCAL)


async def ways_to_begin(talk: Talk, conversation: str, held: str) -> Mapping[str, httpx.Response]:
    """Each way in which a user makes an agent reply."""
    client, path = talk.client, f"/api/conversations/{conversation}"
    waiting = (await detail(talk, held))["queued"][0]["messageId"]
    edited = {"content": "Why not?", "parentId": None}
    return {
        "send": await post(talk, conversation, "2?"),
        "edit": await client.post(f"{path}/messages", json=edited, headers=JSON),
        "regenerate": await client.post(f"{path}/regenerate", json={}, headers=JSON),
        "send what is held": await send_held(talk, held, waiting),
        "send behind what is held": await post(talk, held, "3?"),
        "edit what is held": await client.patch(
            f"/api/conversations/{held}/queued/{waiting}", json={"content": "longer"}
        ),
    }


async def test_without_room_no_turn_begins_and_nothing_is_stored(talk: Talk, model: ScriptedModel):
    held = await hold(talk, model, "2?")
    conversation = await talk.titled_conversation()
    model.script([Say("Because.")])
    await talk.ask(conversation)
    stored, before = await size(talk), [await talk.messages(it) for it in (conversation, held)]
    await leave_room(talk, stored)
    for way, response in (await ways_to_begin(talk, conversation, held)).items():
        assert response.status_code == 422, way
        refused(response)
    assert [await talk.messages(it) for it in (conversation, held)] == before
    assert (await queued(talk, held), await size(talk)) == (["2?"], stored)
    await leave_room(talk, stored + 10_000)
    model.otherwise = [Say("Because.")]
    assert (await talk.ask(conversation, "And now?"))["content"] == "Because."


async def test_turn_that_runs_out_of_room_keeps_its_reply_and_what_waits_is_held(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Wait(gate), Say("x" * 50_000)], [Say("two")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation)
    await gate.reached()
    before = await size(talk)
    await leave_room(talk, before + 5_000)
    for content in ("2?", "3?"):
        assert (await post(talk, conversation, content)).status_code == 202
    assert before < await size(talk) < before + 1_000  # what waits takes room, too
    for when_busy in ("queue", "steer", "stop"):
        refused(await post(talk, conversation, "y" * 10_000, when_busy=when_busy))
    gate.open()
    assert (await talk.events(turn))[-1]["status"] == "COMPLETED"
    await until_idle(talk, conversation)
    # The first that waited has begun in the commit that stored the long reply.
    assert await said(talk, conversation) == ["Why?", "x" * 50_000, "2?", "two"]
    held = [(it["content"], it["held"]) for it in (await detail(talk, conversation))["queued"]]
    assert held == [("3?", True)]
    assert await size(talk) > before + 50_000
    refused(await post(talk, conversation, "4?"))
    other = await talk.client.get("/api/conversations")
    assert [it["id"] for it in other.json()["items"]] == [conversation]


async def test_turn_that_waits_for_its_user_goes_on_without_room(
    talk_with_tools: Talk, model: ScriptedModel, server: ToolServer
):
    talk = talk_with_tools
    model.script([UseTool("post__send", {"to": "Eve"})], [Say("Done.")])
    (asked,) = (await waiting(talk, await asking(talk, server)))["approvals"]
    await leave_room(talk, 1)
    assert (await decide(talk, asked, action="allow")).status_code == 200
    answered = await reply(talk, asked["turnId"])
    assert (answered["content"], answered["status"]) == ("Done.", "COMPLETED")


@pytest.mark.parametrize("when_busy", ["queue", "steer"])
async def test_message_that_is_removed_or_joins_its_turn_counts_once(
    talk: Talk, model: ScriptedModel, when_busy: str
):
    gate = Gate()
    model.script([Say("o"), Wait(gate)], [Say("two")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation)
    await gate.reached()
    before = await size(talk)
    message = (await post(talk, conversation, "w" * 9_000, when_busy)).json()["messageId"]
    assert 9_000 < await size(talk) - before < 9_300
    if when_busy == "queue":
        await talk.client.delete(f"/api/conversations/{conversation}/queued/{message}")
        assert await size(talk) == before
    gate.open()
    await talk.events(turn)
    await until_idle(talk, conversation)
    grown = await size(talk) - before
    assert grown < 300 if when_busy == "queue" else 9_000 < grown < 10_000
