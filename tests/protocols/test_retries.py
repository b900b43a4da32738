"""An SDK that repeats a request by itself gets the turn that the first one began, even if it has ended."""

import asyncio
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.protocols.test_refusals import PROTOCOLS, TEXT, conversations, first_message, stopping
from tests.talking import Talk
from threadkeep.clock import system_clock
from threadkeep.services.retries import MOST_LOOKED_AT, RETRIED_MS
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Status, UseTool, Wait

RETRY = {"x-stainless-retry-count": "1"}
FOREIGN = [it for it in PROTOCOLS if it != "chat"]


@pytest.fixture(autouse=True)
def replies(model: ScriptedModel) -> None:
    def reply(request: Recorded) -> Reply:
        return [Say(f"Reply {len(model.requests)}.")]

    model.otherwise = reply


async def answered(talk: Talk, conversation: str) -> list[Any]:
    return [it["content"] for it in await talk.messages(conversation) if it["role"] == "assistant"]


async def new_titled(talk: Talk, protocol: str, model: ScriptedModel) -> str:
    """A conversation that a first message on a protocol opened; the model is asked for no title later."""
    await first_message(talk, protocol)
    (conversation,) = await conversations(talk)
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "About that"})
    return conversation


@pytest.mark.parametrize("protocol", FOREIGN)
async def test_retry_returns_the_turn_that_has_ended(protocol: str, talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    first = await stopping(talk, protocol, conversation)
    before = await answered(talk, conversation)
    assert len(before) == 1
    talk.client.headers.update(RETRY)
    again = await stopping(talk, protocol, conversation)
    assert before[0] in first.text
    assert before[0] in again.text
    assert await answered(talk, conversation) == before
    del talk.client.headers["x-stainless-retry-count"]
    await stopping(talk, protocol, conversation, "Another question?")
    assert len(await answered(talk, conversation)) == 2


@pytest.mark.parametrize("protocol", FOREIGN)
async def test_retry_of_a_first_message_opens_no_second_conversation(
    protocol: str, talk: Talk, model: ScriptedModel
):
    conversation = await new_titled(talk, protocol, model)
    before = await answered(talk, conversation)
    talk.client.headers.update(RETRY)
    again = await first_message(talk, protocol)
    assert before[0] in again.text
    assert await conversations(talk) == [conversation]
    assert await answered(talk, conversation) == before
    # Not what another request said, nor what is long over.
    await first_message(talk, protocol, "Something else?")
    assert len(await all_replies(talk)) == 2


async def say_newer(talk: Talk, model: ScriptedModel, conversation: str, how: str) -> str:
    """Another message in the conversation, from our own API; gives its turn, which runs or has ended."""
    gate = Gate()
    model.script([Say("Newer."), Wait(gate)])
    turn = await talk.begin(conversation, "Second?")
    await gate.reached()
    if how == "newer ended":
        gate.open()
        await talk.events(turn)
    return turn


async def status(talk: Talk, turn: str) -> str:
    return (await talk.client.get(f"/api/turns/{turn}")).json()["status"]


NEWER = ["newer runs", "newer ended"]


@pytest.mark.parametrize("how", NEWER)
@pytest.mark.parametrize("protocol", FOREIGN)
async def test_retry_returns_its_turn_though_something_newer_was_said(
    protocol: str, how: str, talk: Talk, model: ScriptedModel
):
    conversation = await talk.titled_conversation()
    await stopping(talk, protocol, conversation)
    (said,) = await answered(talk, conversation)
    newer = await say_newer(talk, model, conversation, how)
    asked = len(model.requests)
    talk.client.headers.update(RETRY)
    again = await stopping(talk, protocol, conversation)
    assert said in again.text
    assert len(model.requests) == asked
    assert await status(talk, newer) == ("RUNNING" if how == "newer runs" else "COMPLETED")
    assert len(await talk.messages(conversation)) == 4


@ONLY_SQLITE
@pytest.mark.parametrize("how", NEWER)
@pytest.mark.parametrize("protocol", FOREIGN)
async def test_retry_of_a_first_message_finds_its_conversation_though_something_newer_was_said(
    protocol: str, how: str, talk: Talk, model: ScriptedModel
):
    conversation = await new_titled(talk, protocol, model)
    (said,) = await answered(talk, conversation)
    newer = await say_newer(talk, model, conversation, how)
    talk.client.headers.update(RETRY)
    assert said in (await first_message(talk, protocol)).text
    assert await conversations(talk) == [conversation]
    assert await status(talk, newer) == ("RUNNING" if how == "newer runs" else "COMPLETED")
    assert len(await talk.messages(conversation)) == 4


@ONLY_SQLITE
@pytest.mark.parametrize("how", NEWER)
@pytest.mark.parametrize("protocol", ["ai-sdk", "ag-ui"])
async def test_retry_of_asking_again_returns_that_answer_though_something_newer_was_said(
    protocol: str, how: str, talk: Talk, model: ScriptedModel
):
    conversation = await talk.titled_conversation()
    await stopping(talk, protocol, conversation)

    async def ask_again() -> str:
        if protocol == "ag-ui":
            return (await stopping(talk, protocol, conversation)).text
        more = {"id": conversation, "trigger": "regenerate-message"}
        return (await first_message(talk, protocol, **more)).text

    if protocol == "ag-ui":  # another run asks again, and only a run with its id is its retry
        body = {"threadId": conversation, "messages": [{"id": "u1", "role": "user", "content": TEXT}]}
        await talk.client.post("/api/ag-ui/default", json={**body, "runId": "another"})
    else:
        await ask_again()
    first, again = await answered(talk, conversation)
    newer = await say_newer(talk, model, conversation, how)
    talk.client.headers.update(RETRY)
    assert (first if protocol == "ag-ui" else again) in await ask_again()
    assert await status(talk, newer) == ("RUNNING" if how == "newer runs" else "COMPLETED")
    assert len(await talk.messages(conversation)) == 5


@ONLY_SQLITE
@pytest.mark.parametrize("how", NEWER)
async def test_retry_of_an_answer_in_words_answers_once(how: str, talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"askUser": True})
    model.script([UseTool("ask_user", {"question": "Which colour?"})])
    waiting = await stopping(talk, "responses", conversation)
    assert "Which colour?" in waiting.text
    first = await stopping(talk, "responses", conversation, "Blue")
    newer = await say_newer(talk, model, conversation, how)
    talk.client.headers.update(RETRY)
    again = await stopping(talk, "responses", conversation, "Blue")
    assert again.json()["output"] == first.json()["output"]
    assert await status(talk, newer) == ("RUNNING" if how == "newer runs" else "COMPLETED")
    assert len(await talk.messages(conversation)) == 4


@ONLY_SQLITE
@pytest.mark.parametrize("how", ["runs", "ended", "newer runs"])
@pytest.mark.parametrize("said", [[], "One.", "One.\n\nTwo."], ids=["nothing", "an item", "all items"])
async def test_retry_of_asking_for_a_reply_to_what_was_added_returns_that_reply(
    said: Any, how: str, talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("Because."), Wait(gate)])
    added = ["One.", "Two."] if said == "One.\n\nTwo." else ["One."]
    items = [{"role": "user", "content": it} for it in added]
    conversation = (await talk.client.post("/v1/conversations", json={"items": items})).json()["id"]
    (own,) = await conversations(talk)
    await talk.client.patch(f"/api/conversations/{own}", json={"title": "About that"})
    body = {"conversation": conversation, "input": said}
    first = asyncio.create_task(talk.client.post("/v1/responses", json=body))
    await gate.reached()
    if how != "runs":
        gate.open()
        await first
    if how in NEWER:
        await say_newer(talk, model, own, how)
    again = asyncio.create_task(talk.client.post("/v1/responses", json=body, headers=RETRY))
    await asyncio.sleep(0.1)
    gate.open()
    assert (await again).json()["id"] == (await first).json()["id"]
    assert (await again).json()["output"] == (await first).json()["output"]


@ONLY_SQLITE
async def test_retry_that_asks_about_newly_added_items_is_answered(talk: Talk):
    item = {"role": "user", "content": "One."}
    conversation = (await talk.client.post("/v1/conversations", json={"items": [item]})).json()["id"]
    body: dict[str, Any] = {"conversation": conversation, "input": []}
    first = await talk.client.post("/v1/responses", json=body)
    items = {"items": [{"role": "user", "content": "Two."}]}
    assert (await talk.client.post(f"/v1/conversations/{conversation}/items", json=items)).is_success
    # The first attempt never arrived.
    other = await talk.client.post("/v1/responses", json=body, headers=RETRY)
    assert other.status_code == 200
    assert other.json()["id"] != first.json()["id"]


@ONLY_SQLITE
async def test_retry_looks_at_so_many_of_the_newest_messages(talk: Talk):
    conversation = await talk.titled_conversation()
    await stopping(talk, "responses", conversation)
    for number in range(MOST_LOOKED_AT // 2):
        await talk.ask(conversation, f"{number}?")
    talk.client.headers.update(RETRY)
    await stopping(talk, "responses", conversation)
    assert len(await answered(talk, conversation)) == MOST_LOOKED_AT // 2 + 2


async def all_replies(talk: Talk) -> list[Any]:
    return [it for conversation in await conversations(talk) for it in await answered(talk, conversation)]


async def test_retry_long_after_the_end_is_another_request(talk: Talk, monkeypatch: pytest.MonkeyPatch):
    conversation = await talk.titled_conversation()
    await stopping(talk, "responses", conversation)
    later = system_clock() + RETRIED_MS + 1
    monkeypatch.setattr((await talk.app.services()).sending, "_clock", lambda: later)
    talk.client.headers.update(RETRY)
    await stopping(talk, "responses", conversation)
    assert len(await answered(talk, conversation)) == 2


@ONLY_SQLITE
async def test_retry_of_a_turn_that_failed_begins_another(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    model.script([Status(400)])
    await stopping(talk, "responses", conversation)
    talk.client.headers.update(RETRY)
    again = await stopping(talk, "responses", conversation)
    assert again.json()["status"] == "completed"


async def test_the_same_run_of_ag_ui_is_a_retry_and_another_run_asks_again(talk: Talk, model: ScriptedModel):
    body = {"threadId": "t", "messages": [{"id": "u1", "role": "user", "content": "Why?"}]}

    async def run(id_: str) -> str:
        return (await talk.client.post("/api/ag-ui/default", json={**body, "runId": id_})).text

    first, again = await run("r1"), await run("r1")
    (conversation,) = await conversations(talk)
    (said,) = await answered(talk, conversation)
    assert said in first
    assert said in again
    await run("r2")
    assert len(await answered(talk, conversation)) == 2


@ONLY_SQLITE
@pytest.mark.parametrize("count", ["", "0", "-1", "x", "１"])
async def test_only_a_count_of_retries_says_so(count: str, talk: Talk):
    conversation = await talk.titled_conversation()
    await stopping(talk, "responses", conversation)
    await talk.client.post(
        "/v1/responses",
        json={"input": "Why is that so?", "conversation": conversation},
        headers={b"x-stainless-retry-count": count.encode()},
    )
    assert len(await answered(talk, conversation)) == 2
