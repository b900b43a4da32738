"""Requests that begin a turn and are sent again with the same `Idempotency-Key`, on every protocol: the
repetition follows the turn that the first one began.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest

from tests.conftest import ONLY_SQLITE
from tests.http.api.test_queue import detail, hold
from tests.talking import JSON, Talk
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Wait

KEY = "6f1c"
TEXT = "Why is that so?"
USER = {"role": "user", "content": TEXT}
UI_MESSAGE = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": TEXT}]}


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation with one turn, whose last one was stopped if messages are held."""

    conversation: str
    question: str
    turn: str
    held: str = ""
    added: str = ""

    @property
    def response(self) -> str:
        """Its turn as OpenAI's clients know it."""
        return f"resp_{self.turn.replace('-', '')}"

    @property
    def asked_again(self) -> dict[str, Any]:
        """Its question as a client lists it."""
        return {"id": self.question, "role": "user", "content": "First?"}


Body = Callable[[Place], dict[str, Any]]
RESPONSES, COMPLETIONS, AI_SDK = "/v1/responses", "/v1/chat/completions", "/api/ai-sdk/chat"
AG_UI, COPILOTKIT = "/api/ag-ui/{agent}", "/api/ag-ui/agent/{agent}/run"
MESSAGES = "/api/conversations/{conversation_id}/messages"
REGENERATE = "/api/conversations/{conversation_id}/regenerate"
SEND_HELD = "/api/conversations/{conversation_id}/queued/{message_id}/send"

OPENS: dict[str, tuple[str, Body]] = {
    "responses, first": (RESPONSES, lambda it: {"input": TEXT}),
    "chat, first": ("/api/chat", lambda it: {"content": TEXT}),
    "ai-sdk, first": (AI_SDK, lambda it: {"id": "c", "trigger": "submit-message", "messages": [UI_MESSAGE]}),
    "ag-ui, first": (AG_UI, lambda it: {"threadId": "t", "runId": "r", "messages": [{"id": "u", **USER}]}),
}
CONTINUES: dict[str, tuple[str, Body]] = {
    "messages": (MESSAGES, lambda it: {"content": TEXT, "whenBusy": "stop"}),
    "regenerate": (REGENERATE, lambda it: {"whenBusy": "stop"}),
    "responses": (RESPONSES, lambda it: {"input": TEXT, "conversation": it.conversation}),
    "responses, after": (RESPONSES, lambda it: {"input": TEXT, "previous_response_id": it.response}),
    "responses, added": (RESPONSES, lambda it: {"input": [], "conversation": it.added}),
    "completions": (COMPLETIONS, lambda it: {"messages": [USER], "conversation": it.conversation}),
    "ai-sdk": (
        AI_SDK,
        lambda it: {"id": it.conversation, "trigger": "submit-message", "messages": [UI_MESSAGE]},
    ),
    "ai-sdk, again": (
        AI_SDK,
        lambda it: {
            "id": it.conversation,
            "trigger": "regenerate-message",
            "messages": [{**UI_MESSAGE, "id": it.question}],
        },
    ),
    "ag-ui": (
        AG_UI,
        lambda it: {"threadId": it.conversation, "runId": "r", "messages": [{"id": "u", **USER}]},
    ),
    "ag-ui, again": (
        COPILOTKIT,
        lambda it: {"threadId": it.conversation, "runId": "r", "messages": [it.asked_again]},
    ),
}
REQUESTS = {**OPENS, **CONTINUES}
BEGINS_A_TURN = {route for route, _ in REQUESTS.values()} | {SEND_HELD}


@pytest.fixture(autouse=True)
def replies(model: ScriptedModel) -> None:
    def reply(request: Recorded) -> Reply:
        return [Say(f"Reply {len(model.requests)}.")]

    model.otherwise = reply


async def place(talk: Talk, name: str) -> Place:
    conversation = await talk.titled_conversation()
    reply = await talk.ask(conversation, "First?")
    question = (await talk.messages(conversation))[0]["id"]
    added = ""
    if name == "responses, added":
        items = {"items": [{"role": "user", "content": "Added."}]}
        added = (await talk.client.post("/v1/conversations", json=items)).json()["id"]
    return Place(conversation, question, reply["turnId"], added=added)


async def send(talk: Talk, name: str, where: Place, key: str = KEY, more: bytes = b"") -> httpx.Response:
    route, body = REQUESTS[name]
    path = route.format(conversation_id=where.conversation, agent="default")
    # Our own routes answer with a whole reply, as OpenAI's do.
    path += "?wait=true" if route in {MESSAGES, REGENERATE, "/api/chat"} else ""
    headers = {**JSON, "Idempotency-Key": key, "Content-Type": "application/json"}
    content = msgspec.json.encode(body(where)) + more
    return await talk.client.post(path, content=content, headers=headers)


async def everything(talk: Talk) -> dict[str, list[str]]:
    """The messages of all conversations, by their ids."""
    listed = (await talk.client.get("/api/conversations")).json()["items"]
    return {it["id"]: [found["id"] for found in await talk.messages(it["id"])] for it in listed}


async def new_reply(talk: Talk, before: dict[str, list[str]]) -> tuple[str, str]:
    """The one reply that was added, and its conversation."""
    listed = (await talk.client.get("/api/conversations")).json()["items"]
    messages = [message for it in listed for message in await talk.messages(it["id"])]
    known = {id_ for ids in before.values() for id_ in ids}
    (reply,) = [it for it in messages if it["id"] not in known and it["role"] == "assistant"]
    return reply["content"], reply["conversationId"]


@ONLY_SQLITE
@pytest.mark.parametrize("name", REQUESTS)
async def test_repetition_follows_the_turn_that_the_first_request_began(
    name: str, talk: Talk, model: ScriptedModel
):
    where = await place(talk, name)
    before = await everything(talk)
    first = await send(talk, name, where)
    assert first.status_code == 200, first.text
    said, conversation = await new_reply(talk, before)
    after = await everything(talk)
    assert said in first.text
    # Also while something newer runs, which goes on, and once it has ended.
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "About that"})
    again = await send(talk, name, where)
    assert (again.status_code, await everything(talk)) == (200, after)
    assert said in again.text
    gate = Gate()
    model.script([Say("Newer."), Wait(gate)])
    newer = await talk.begin(conversation, "Second?")
    await gate.reached()
    after = await everything(talk)
    assert said in (await send(talk, name, where)).text
    gate.open()
    assert (await talk.events(newer))[-1]["status"] == "COMPLETED"
    assert said in (await send(talk, name, where)).text
    assert await everything(talk) == after
    # Another key is another request, unless it is the same run; another request with the same key is refused.
    if "ag-ui" not in name and name not in {"ai-sdk, again", "responses, added"}:
        assert (await send(talk, name, where, key="another")).status_code == 200
        assert await everything(talk) != after
    if name not in {"chat, first", "messages", "regenerate"}:  # they compare what is meant, not the bytes
        after = await everything(talk)
        other = await send(talk, name, where, more=b"\n")
        assert other.status_code in {400, 422}
        assert "already used with a different" in other.text
        assert await everything(talk) == after


@pytest.mark.parametrize("name", REQUESTS)
async def test_of_many_at_once_one_begins_a_turn_and_all_follow_it(name: str, talk: Talk):
    where = await place(talk, name)
    before = await everything(talk)
    responses = await asyncio.gather(*(send(talk, name, where) for _ in range(4)))
    said, _ = await new_reply(talk, before)
    assert [it.status_code for it in responses] == [200] * 4, [it.text for it in responses]
    assert all(said in it.text for it in responses)


@ONLY_SQLITE
async def test_held_message_is_sent_once(talk: Talk, model: ScriptedModel):
    conversation = await hold(talk, model, "2?")
    (held,) = (await detail(talk, conversation))["queued"]
    path = SEND_HELD.format(conversation_id=conversation, message_id=held["messageId"])
    headers = {**JSON, "Idempotency-Key": KEY}
    first, again = [await talk.client.post(f"{path}?wait=true", headers=headers) for _ in range(2)]
    assert (again.status_code, again.json()["turnId"]) == (200, first.json()["turnId"])


@ONLY_SQLITE
async def test_key_that_opened_a_conversation_is_one_of_its_user(talk: Talk):
    where = await place(talk, "")
    await send(talk, "responses, first", where)
    agent = (await talk.client.get("/api/agents")).json()["items"][0]["id"]
    path = f"/api/agents/{agent}/conversations"
    taken = await talk.client.post(path, json={}, headers={"Idempotency-Key": KEY})
    assert (taken.status_code, taken.json()["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")


@ONLY_SQLITE
async def test_repetition_finds_no_deleted_conversation_and_opens_no_other(talk: Talk):
    where = await place(talk, "")
    before = await everything(talk)
    await send(talk, "responses, first", where)
    _, conversation = await new_reply(talk, before)
    await talk.client.delete(f"/api/conversations/{conversation}")
    again = await send(talk, "responses, first", where)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "conversation_not_found")
    assert await everything(talk) == before


@ONLY_SQLITE
async def test_another_key_asks_again_even_in_the_same_words(talk: Talk, model: ScriptedModel):
    where, gate = await place(talk, ""), Gate()
    model.script([Say("Because."), Wait(gate)])
    running = asyncio.create_task(send(talk, "responses", where, key="one"))
    await gate.reached()
    other = await send(talk, "responses", where, key="two")
    gate.open()
    assert other.json()["id"] != (await running).json()["id"]
