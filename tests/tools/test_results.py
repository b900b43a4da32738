"""`recall_result`: the results of this conversation's tool calls, whole, and of no other's."""

from typing import Any

import msgspec
import pytest

from tests.making import ALICE, NOW, chunk_of, keep_agent, keep_begun, keep_call, keep_conversation
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.events import IterationStart, ToolCalled, ToolResultStored
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.tool_call import MODEL_READS
from threadkeep.domain.user import User
from threadkeep.log.replies import written_so_far
from threadkeep.ports.tools import Caller, Returned
from threadkeep.storage.store import Store
from threadkeep.tools.results import MOST_CHARACTERS, MOST_MATCHES, RECALL_RESULT, ResultsServer


async def recall(
    store: Store, agent: Agent, conversation: Conversation, id_: Any, **arguments: Any
) -> Returned:
    server, caller = ResultsServer(store, written_so_far), Caller(agent, User(ALICE), conversation)
    assert await server.tools(caller) == (RECALL_RESULT,)
    steps = [it async for it in server.call(caller, "recall_result", {"id": id_, **arguments})]
    (returned,) = steps
    assert isinstance(returned, Returned)
    return returned


async def test_small_result_comes_back_as_the_model_saw_it(store: Store):
    agent = await keep_agent(store)
    conversation, _ = await keep_call(
        store, await keep_conversation(store, agent), "a", result={"rows": [1, 2]}
    )
    assert (await recall(store, agent, conversation, "a")).result == {
        "id": "a",
        "tool": "promptx_action",
        "characters": 14,
        "offset": 0,
        "text": '{"rows":[1,2]}',
    }


async def test_result_of_the_turn_that_runs_is_found_before_those_of_earlier_turns(store: Store):
    agent = await keep_agent(store)
    conversation, _ = await keep_call(store, await keep_conversation(store, agent), "a", result="old")
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    called = ToolCalled("a", "rows", "shop", {}), ToolCalled("b", "rows", "shop", {})
    resulted = ToolResultStored("a", "rows", "ok", "new", None, 1)
    chunk = chunk_of(begun.turn.id, 2, IterationStart(1), *called, resulted)
    assert await store.log.append([(chunk, 1)]) == {begun.turn.id}
    assert (await recall(store, agent, begun.conversation, "a")).result["text"] == "new"
    assert (await recall(store, agent, begun.conversation, "b")).status == "error"  # it has not ended


async def test_large_result_is_read_page_by_page(store: Store):
    agent = await keep_agent(store)
    conversation = await keep_conversation(store, agent)
    text = "".join(f"row {number}\n" for number in range(5000))
    content = msgspec.json.encode(text)
    payload = Payload.of(content, conversation.id, PayloadKind.VALUE, "application/json", NOW)
    await store.payloads.add(payload, content)
    refs = {"result": payload.id, MODEL_READS: payload.id}
    conversation, _ = await keep_call(store, conversation, "a", refs=refs)
    read, offset = "", 0
    while offset is not None:
        page = (await recall(store, agent, conversation, "a", offset=offset)).result
        assert len(page["text"]) <= MOST_CHARACTERS
        read += page["text"]
        offset = page.get("nextOffset")
    assert read == text
    found = (await recall(store, agent, conversation, "a", query="ROW 4711")).result
    assert [it["text"].count("row 4711\n") for it in found["matches"]] == [1]
    many = (await recall(store, agent, conversation, "a", query="row")).result
    assert len(many["matches"]) == MOST_MATCHES
    beyond = (await recall(store, agent, conversation, "a", offset=10**9)).result
    assert beyond["text"] == ""


async def test_result_of_another_conversation_is_not_found(store: Store):
    agent = await keep_agent(store)
    await keep_call(store, await keep_conversation(store, agent), "a", result="secret")
    other = await keep_conversation(store, agent)
    returned = await recall(store, agent, other, "a")
    assert (returned.status, "secret" in str(returned)) == ("error", False)


@pytest.mark.parametrize(
    ("id_", "arguments"),
    [
        (7, {}),
        ("", {}),
        ("a", {"offset": -1}),
        ("a", {"offset": "x"}),
        ("a", {"query": 7}),
        ("\ud800\x00", {}),
    ],
)
async def test_what_cannot_be_is_an_error_with_a_reason(store: Store, id_: Any, arguments: dict[str, Any]):
    agent = await keep_agent(store)
    conversation, _ = await keep_call(store, await keep_conversation(store, agent), "a", result="x")
    returned = await recall(store, agent, conversation, id_, **arguments)
    assert returned.status == "error"
    assert returned.error


async def test_each_of_two_calls_with_the_same_id_is_read_by_the_id_that_the_model_was_sent(store: Store):
    agent = await keep_agent(store)
    conversation, first = await keep_call(store, await keep_conversation(store, agent), "a", result="one")
    conversation, second = await keep_call(store, conversation, "a", result="two")
    read = [(await recall(store, agent, conversation, it.sent_id)).result["text"] for it in (first, second)]
    assert read == ["one", "two"]
