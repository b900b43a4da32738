"""Messages that are sent while the agent answers: queued, edited, removed, held, and steering the turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import httpx
import pytest

from tests.conftest import Api
from tests.engine.in_memory import InMemoryTools
from tests.making import keep_agent, keep_begun, keep_conversation
from tests.talking import JSON, Talk
from threadkeep.domain.ids import UserId
from threadkeep.domain.queued import MOST_QUEUED
from threadkeep.ports.tools import Returned
from threadkeep.testing import Fail, Gate, Say, ScriptedModel, UseTool, Wait, until


async def post(
    talk: Talk, conversation: str, content: str, when_busy: str = "queue", key: str | None = None, **more: Any
) -> httpx.Response:
    body = {"content": content, "whenBusy": when_busy, **more}
    headers = {**JSON, "Idempotency-Key": key} if key else JSON
    return await talk.client.post(f"/api/conversations/{conversation}/messages", json=body, headers=headers)


async def detail(talk: Talk, conversation: str) -> dict[str, Any]:
    return (await talk.client.get(f"/api/conversations/{conversation}")).json()


async def queued(talk: Talk, conversation: str) -> list[str]:
    return [it["content"] for it in (await detail(talk, conversation))["queued"]]


async def said(talk: Talk, conversation: str) -> list[str]:
    return [message["content"] for message in await talk.messages(conversation)]


def looks(found: asyncio.Event) -> Callable[[Mapping[str, Any]], AsyncGenerator[Returned]]:
    async def look(_: Mapping[str, Any]) -> AsyncGenerator[Returned]:
        await found.wait()
        yield Returned("ok", "a.txt")

    return look


async def until_idle(talk: Talk, conversation: str) -> None:
    async def is_idle() -> bool:
        return (await detail(talk, conversation))["activeTurnId"] is None

    await until(is_idle)


async def test_queued_messages_are_sent_in_their_order_when_the_turn_has_completed(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("one"), Wait(gate)], [Say("two")], [Say("three")])
    conversation = await talk.titled_conversation()
    first = await talk.begin(conversation, "1?")
    await gate.reached()
    responses = [await post(talk, conversation, content) for content in ("2?", "3?")]
    assert [it.status_code for it in responses] == [202, 202]
    assert [it.json() for it in responses] == [
        {"queued": True, "messageId": it.json()["messageId"]} for it in responses
    ]
    listed = (await detail(talk, conversation))["queued"]
    assert [(it["content"], it["held"], it["files"]) for it in listed] == [
        ("2?", False, []),
        ("3?", False, []),
    ]
    assert "steers" not in listed[0]
    gate.open()
    await talk.events(first)
    await until_idle(talk, conversation)
    messages = await talk.messages(conversation)
    assert [it["content"] for it in messages] == ["1?", "one", "2?", "two", "3?", "three"]
    assert [messages[2]["id"], messages[4]["id"]] == [it.json()["messageId"] for it in responses]
    assert await queued(talk, conversation) == []


async def test_next_turn_runs_for_whoever_has_seen_the_end_of_the_one_before(
    talk: Talk, model: ScriptedModel
):
    first_gate, second_gate = Gate(), Gate()
    model.script([Say("one"), Wait(first_gate)], [Say("two"), Wait(second_gate)])
    conversation = await talk.titled_conversation()
    first = await talk.begin(conversation, "1?")
    await first_gate.reached()
    message = (await post(talk, conversation, "2?")).json()["messageId"]
    first_gate.open()
    assert (await talk.events(first))[-1]["type"] == "done"
    second = (await detail(talk, conversation))["activeTurnId"]
    assert second not in {None, first}
    second_gate.open()
    events = await talk.events(second)
    assert (events[0]["type"], events[0]["user_message_id"]) == ("turn_start", message)
    assert events[-1]["status"] == "COMPLETED"


async def test_queued_message_can_be_edited_and_removed_until_it_is_sent(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("one")])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation, "1?")
    await gate.reached()
    kept, dropped = [(await post(talk, conversation, it)).json()["messageId"] for it in ("two", "three")]
    path = f"/api/conversations/{conversation}/queued"
    response = await talk.client.patch(f"{path}/{kept}", json={"content": "2?"})
    assert (response.status_code, response.json()["content"], response.json()["held"]) == (200, "2?", False)
    assert (await talk.client.patch(f"{path}/{kept}", json={"content": " "})).status_code == 400
    assert (await talk.client.delete(f"{path}/{dropped}")).status_code == 204
    assert (await talk.client.delete(f"{path}/{dropped}")).json()["error"]["code"] == "MESSAGE_NOT_FOUND"
    gate.open()
    await until_idle(talk, conversation)
    assert (await said(talk, conversation))[::2] == ["1?", "2?"]
    for gone in (await talk.client.patch(f"{path}/{kept}", json={"content": "x"}),
                 await talk.client.delete(f"{path}/{kept}")):  # fmt: skip
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "MESSAGE_NOT_FOUND")


@pytest.mark.parametrize("end", ["FAILED", "CANCELLED"])
async def test_queue_is_held_after_a_turn_that_did_not_complete(talk: Talk, model: ScriptedModel, end: str):
    gate = Gate()
    # The call is made once more after its stream broke off, and only then does the turn fail.
    broken = [[Say("o"), Wait(gate), Fail("No.")], [Say("o"), Fail("No.")]]
    model.script(*(broken if end == "FAILED" else [[Say("o"), Wait(gate)]]))
    conversation = await talk.titled_conversation()
    first = await talk.begin(conversation, "1?")
    await gate.reached()
    for content in ("2?", "3?"):
        await post(talk, conversation, content)
    if end == "CANCELLED":
        await talk.client.post(f"/api/conversations/{conversation}/abort")
    gate.open()
    await talk.events(first)
    listed = await detail(talk, conversation)
    assert [(it["content"], it["held"]) for it in listed["queued"]] == [("2?", True), ("3?", True)]
    assert listed["activeTurnId"] is None

    model.script([Say("two")], [Say("three")], [Say("four")])
    # Whatever it says about being busy: what is held goes first.
    response = await post(talk, conversation, "4?", when_busy="reject")
    assert (response.status_code, response.json()["queued"]) == (202, True)
    await until_idle(talk, conversation)
    assert (await said(talk, conversation))[2:] == ["2?", "two", "3?", "three", "4?", "four"]


async def hold(talk: Talk, model: ScriptedModel, *contents: str) -> str:
    """A conversation with messages that a stopped turn left on hold."""
    gate = Gate()
    model.script([Say("o"), Wait(gate)])
    conversation = await talk.titled_conversation()
    stopped = await talk.begin(conversation, "1?")
    await gate.reached()
    for content in contents:
        await post(talk, conversation, content)
    await talk.client.post(f"/api/conversations/{conversation}/abort")
    await talk.events(stopped)
    return conversation


async def send_held(talk: Talk, conversation: str, message_id: str, key: str | None = None) -> httpx.Response:
    path = f"/api/conversations/{conversation}/queued/{message_id}/send"
    return await talk.client.post(path, headers={**JSON, "Idempotency-Key": key} if key else JSON)


async def test_held_message_is_sent_at_once_and_the_others_follow(talk: Talk, model: ScriptedModel):
    conversation = await hold(talk, model, "2?", "3?")
    _, third = (await detail(talk, conversation))["queued"]
    gate = Gate()
    model.script([Say("three"), Wait(gate)], [Say("two")])
    response = await send_held(talk, conversation, third["messageId"])
    assert response.status_code == 202
    await gate.reached()
    assert response.json()["userMessageId"] == third["messageId"]
    busy = await send_held(talk, conversation, third["messageId"])
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "TURN_IN_PROGRESS")
    gate.open()
    await until_idle(talk, conversation)
    assert (await said(talk, conversation))[2:] == ["3?", "three", "2?", "two"]
    sent = await send_held(talk, conversation, third["messageId"])
    assert (sent.status_code, sent.json()["error"]["code"]) == (404, "MESSAGE_NOT_FOUND")


async def test_held_message_that_is_sent_twice_at_once_begins_one_turn(talk: Talk, model: ScriptedModel):
    conversation = await hold(talk, model, "2?")
    (second,) = (await detail(talk, conversation))["queued"]
    model.script([Say("two")])
    responses = await asyncio.gather(*(send_held(talk, conversation, second["messageId"]) for _ in range(5)))
    assert sorted(it.status_code for it in responses)[0] == 202
    assert all(it.status_code in (404, 409) for it in sorted(responses, key=lambda it: it.status_code)[1:])
    await until_idle(talk, conversation)
    assert (await said(talk, conversation))[2:] == ["2?", "two"]


async def test_held_message_that_is_sent_again_with_its_key_begins_one_turn(talk: Talk, model: ScriptedModel):
    conversation = await hold(talk, model, "2?", "3?")
    second, third = (await detail(talk, conversation))["queued"]
    gate = Gate()
    model.script([Wait(gate), Say("two")], [Say("three")])
    first, *rest = await asyncio.gather(
        *(send_held(talk, conversation, second["messageId"], "k") for _ in range(5))
    )
    assert first.status_code == 202
    assert all(it.json() == first.json() for it in rest)
    other = await send_held(talk, conversation, third["messageId"], "k")
    assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
    gate.open()
    await until_idle(talk, conversation)
    again = await send_held(talk, conversation, second["messageId"], "k")
    assert (again.status_code, again.json()) == (202, first.json())
    assert (await said(talk, conversation))[2:] == ["2?", "two", "3?", "three"]


async def test_held_queue_goes_on_after_the_failed_reply_is_given_again(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate)], [Say("one")], [Say("two")])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation, "1?")
    await gate.reached()
    await post(talk, conversation, "2?")
    await talk.client.post(f"/api/conversations/{conversation}/abort")
    await talk.client.post(f"/api/conversations/{conversation}/regenerate", json={}, headers=JSON)
    await until_idle(talk, conversation)
    path = f"/api/conversations/{conversation}/messages"
    shown = [it["content"] for it in (await talk.client.get(path)).json()["items"]]
    assert shown == ["1?", "one", "2?", "two"]


async def test_message_to_an_idle_conversation_is_sent_whatever_it_says_about_being_busy(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("one")], [Say("two")])
    conversation = await talk.titled_conversation()
    for when_busy in ("queue", "steer"):
        response = await post(talk, conversation, "?", when_busy)
        assert response.json().keys() == {"turnId", "userMessageId", "assistantMessageId"}
        await talk.events(response.json()["turnId"])


async def test_busy_conversation_rejects_by_default_and_refuses_what_cannot_be_queued(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Wait(gate), Say("one")])
    conversation = await talk.titled_conversation(settings={"maxMessageChars": 5})
    await talk.begin(conversation, "1?")
    await gate.reached()

    async def refusal(content: str, when_busy: str = "queue", **more: Any) -> tuple[int, str, str | None]:
        error = (response := await post(talk, conversation, content, when_busy, **more)).json()["error"]
        return response.status_code, error["code"], error.get("param")

    assert await refusal("x", "reject") == (409, "TURN_IN_PROGRESS", None)
    assert await refusal("x", "later") == (422, "INVALID_REQUEST", "whenBusy")
    assert await refusal("x", parentId=None) == (422, "INVALID_REQUEST", "parentId")
    assert await refusal(" ") == (400, "MESSAGE_CONTENT_REQUIRED", "content")
    assert await refusal("too long") == (400, "MESSAGE_TOO_LONG", "content")
    for number in range(MOST_QUEUED):
        assert (await post(talk, conversation, f"{number}")).status_code == 202
    full = await post(talk, conversation, "x")
    assert (full.status_code, full.json()["error"]["details"]) == (
        429,
        {"limit": "queuedMessages", "most": MOST_QUEUED},
    )
    await talk.client.post(f"/api/conversations/{conversation}/abort")


@pytest.mark.parametrize("when_busy", ["queue", "steer"])
async def test_idempotency_key_gives_the_same_message_and_then_its_turn(
    talk: Talk, model: ScriptedModel, when_busy: str
):
    gate = Gate()
    model.script([Wait(gate), Say("one")], [Say("two")])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation, "1?")
    await gate.reached()
    first = await post(talk, conversation, "2?", when_busy, key="k")
    again = await post(talk, conversation, "2?", when_busy, key="k")
    assert (again.status_code, again.json()) == (202, first.json())
    assert await queued(talk, conversation) == ["2?"]
    other = await post(talk, conversation, "another", when_busy, key="k")
    assert other.json()["error"]["code"] == "IDEMPOTENCY_MISMATCH"
    gate.open()
    await until_idle(talk, conversation)
    sent = await post(talk, conversation, "2?", when_busy, key="k")
    assert sent.json()["userMessageId"] == first.json()["messageId"]
    assert await said(talk, conversation) == ["1?", "one", "2?", "two"]


async def test_queued_messages_are_their_users_own(api: Api):
    agent = await keep_agent(api.store, visibility="public")
    begun = (await keep_conversation(api.store, agent)).begin_turn("?", 1)
    await keep_begun(api.store, begun)
    alice, bob = api.as_user("alice"), api.as_user("bob")
    path = f"/api/conversations/{begun.conversation.id}"
    response = await alice.post(f"{path}/messages", json={"content": "2?", "whenBusy": "queue"})
    place = f"{path}/queued/{response.json()['messageId']}"
    for refused in (await bob.patch(place, json={"content": "x"}), await bob.delete(place)):
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "CONVERSATION_NOT_FOUND")
    other = await keep_conversation(api.store, agent, UserId("bob"))
    foreign = await bob.delete(f"/api/conversations/{other.id}/queued/{response.json()['messageId']}")
    assert foreign.json()["error"]["code"] == "MESSAGE_NOT_FOUND"
    assert (await alice.delete(f"{path}/queued/no-id")).json()["error"]["code"] == "MESSAGE_NOT_FOUND"
    assert (await alice.delete(f"{path}?purge=true")).status_code == 204


async def test_queue_is_held_when_the_agent_can_no_longer_be_asked(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Wait(gate), Say("one")])
    conversation = await talk.titled_conversation()
    first = await talk.begin(conversation, "1?")
    await gate.reached()
    await post(talk, conversation, "2?")
    agent = (await detail(talk, conversation))["agentId"]
    assert (await talk.client.delete(f"/api/agents/{agent}")).status_code == 204
    gate.open()
    assert (await talk.events(first))[-1]["status"] == "COMPLETED"
    assert [it["held"] for it in (await detail(talk, conversation))["queued"]] == [True]


async def test_card_that_comes_meanwhile_does_not_keep_the_next_turn_from_beginning(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Wait(gate), Say("one")], [Say("two")])
    agent = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    conversation = (await talk.client.put(f"/api/agents/{agent}/conversation")).json()["id"]
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "About that"})
    await talk.begin(conversation, "1?")
    await gate.reached()
    await post(talk, conversation, "2?")
    card = {"agentId": agent, "userId": "local", "title": "News", "summary": "New.", "priority": "P1"}
    briefing = (await talk.client.post("/api/briefings", json=card)).json()["id"]
    await talk.client.post(f"/api/briefings/{briefing}/actions/start_conversation")
    gate.open()
    await until_idle(talk, conversation)
    assert [it for it in await said(talk, conversation) if isinstance(it, str)] == ["1?", "one", "2?", "two"]


async def test_steering_message_joins_before_the_next_model_call(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    gate, used = Gate(), asyncio.Event()
    tools.add(look=looks(used))
    model.script([Say("Looking."), UseTool("look", {})], [Wait(gate), Say("The other.")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation, "Which file?")
    await until(lambda: bool(tools.calls))
    response = await post(talk, conversation, "No, the other file.", "steer")
    assert response.json() == {"steered": True, "turnId": turn, "messageId": response.json()["messageId"]}
    assert [it["steers"] for it in (await detail(talk, conversation))["queued"]] == [True]
    used.set()
    await gate.reached()
    assert await queued(talk, conversation) == []
    gate.open()
    events = await talk.events(turn)
    kinds = [it["type"] for it in events if it["type"] not in {"usage", "text"}]
    assert kinds[-4:] == ["tool_result", "user_message", "iteration_start", "done"]
    (told,) = [it for it in events if it["type"] == "user_message"]
    assert (told["message_id"], told["content"]) == (response.json()["messageId"], "No, the other file.")
    *_, result, steered = model.requests[1].body["messages"]
    assert (result["role"], steered) == ("tool", {"role": "user", "content": "No, the other file."})
    reply = (await talk.messages(conversation))[1]
    parts = [(it["type"], it.get("text")) for it in reply["parts"]]
    assert parts[2:] == [("user_text", "No, the other file."), ("text", "The other.")]
    assert len(await talk.messages(conversation)) == 2


async def test_steering_message_that_was_taken_in_is_not_taken_twice(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    used = asyncio.Event()
    tools.add(look=looks(used))
    model.script([UseTool("look", {})], [Say("Done.")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation, "Which file?")
    await until(lambda: bool(tools.calls))
    response = await post(talk, conversation, "The other.", "steer", key="k")
    used.set()
    await talk.events(turn)
    again = await post(talk, conversation, "The other.", "steer", key="k")
    assert (again.status_code, again.json()) == (202, response.json())
    assert len(await talk.messages(conversation)) == 2


async def test_steering_message_follows_its_turn_before_what_is_queued_where_the_turn_ends_first(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Wait(gate), Say("one")], [Say("two")], [Say("three")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation, "1?")
    await gate.reached()
    await post(talk, conversation, "3?")
    response = await post(talk, conversation, "2?", "steer")
    gate.open()
    assert "user_message" not in {it["type"] for it in await talk.events(turn)}
    await until_idle(talk, conversation)
    messages = await talk.messages(conversation)
    assert [it["content"] for it in messages] == ["1?", "one", "2?", "two", "3?", "three"]
    assert messages[2]["id"] == response.json()["messageId"]


async def test_message_that_stops_the_turn_keeps_its_text_and_goes_before_what_is_queued(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("one"), Wait(gate)], [Say("two")])
    conversation = await talk.titled_conversation()
    stopped = await talk.begin(conversation, "1?")
    await gate.reached()
    await post(talk, conversation, "Later?")
    await post(talk, conversation, "Steering?", "steer")
    started = await post(talk, conversation, "2?", "stop", key="k")
    assert (started.status_code, started.json()["turnId"] != stopped) == (202, True)
    assert (await post(talk, conversation, "2?", "stop", key="k")).json() == started.json()
    assert [it["type"] for it in await talk.events(stopped)][-1] == "done"
    await talk.events(started.json()["turnId"])
    assert await said(talk, conversation) == ["1?", "one", "2?", "two"]
    assert [(it["content"], it["held"]) for it in (await detail(talk, conversation))["queued"]] == [
        ("Steering?", True),
        ("Later?", True),
    ]


async def test_edit_and_regeneration_stop_the_turn_where_they_say_so(talk: Talk, model: ScriptedModel):
    gates = [Gate(), Gate()]
    model.script([Say("one"), Wait(gates[0])], [Say("two"), Wait(gates[1])], [Say("three")])
    conversation = await talk.titled_conversation()
    await talk.begin(conversation, "1?")
    await gates[0].reached()
    await post(talk, conversation, "1 better?", "stop", parentId=None)
    await gates[1].reached()
    path = f"/api/conversations/{conversation}/regenerate"
    assert (await talk.client.post(path, json={}, headers=JSON)).status_code == 409
    again = await talk.client.post(f"{path}?wait=true", json={"whenBusy": "stop"}, headers=JSON)
    assert (again.status_code, again.json()["content"]) == (200, "three")
    shown = (await detail(talk, conversation))["messages"]
    assert [it["content"] for it in shown] == ["1 better?", "three"]


async def test_message_that_is_refused_stops_nothing(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("one"), Wait(gate), Say(".")])
    conversation = await talk.titled_conversation()
    turn = await talk.begin(conversation, "1?")
    await gate.reached()
    nowhere = "0190c5a0-0000-7000-8000-000000000001"
    refused = [
        await post(talk, conversation, "2?", "stop", parentId=nowhere),
        await post(talk, conversation, "2?", "stop", tip=nowhere),
        await post(talk, conversation, "2?", "stop", model="unknown/model"),
    ]
    path = f"/api/conversations/{conversation}/regenerate"
    wrongs = ({"messageId": nowhere}, {"tip": nowhere}, {"model": "unknown/model"})
    refused += [
        await talk.client.post(path, json={**wrong, "whenBusy": "stop"}, headers=JSON) for wrong in wrongs
    ]
    assert all(it.status_code >= 400 for it in refused), [it.status_code for it in refused]
    gate.open()
    assert (await talk.events(turn))[-1]["status"] == "COMPLETED"


async def test_key_with_a_budget_does_not_steer_a_turn_that_others_pay_for(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("one"), Wait(gate)])
    conversation = await talk.titled_conversation()
    turn = (await post(talk, conversation, "1", "reject")).json()["turnId"]
    answers: list[dict[str, Any]] = []
    for budget in ("5", None):
        body = {"name": "a program", "scopes": ["chat"], "budgetMonth": budget}
        key = (await talk.client.post("/api/keys", json=body)).json()["key"]
        talk.client.headers["x-api-key"] = key
        answers.append((await post(talk, conversation, "2", "steer")).json())
        del talk.client.headers["x-api-key"]
    assert answers[0].keys() == {"queued", "messageId"}
    assert (answers[1]["steered"], answers[1]["turnId"]) == (True, turn)
    gate.open()
