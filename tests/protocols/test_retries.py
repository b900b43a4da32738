"""An SDK that repeats a request by itself gets the turn that the first one began, even if it has ended."""

from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.protocols.test_refusals import PROTOCOLS, conversations, first_message, stopping
from tests.talking import Talk
from threadkeep.clock import system_clock
from threadkeep.services.sending import RETRIED_MS
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, Status

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
