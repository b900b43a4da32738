"""What a model is sent in a conversation that goes on, as the provider receives it."""

import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE, secret_key_for
from tests.engine.in_memory import InMemoryTools, gives
from tests.talking import Talk, talking
from threadkeep.context.request import BuiltRequest, ContextRules, Sources
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.events import ToolCalled
from threadkeep.domain.ids import BriefingId, ConversationId, PayloadId, UserId, new_uuid
from threadkeep.domain.payload import Lost
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.log.format import decode_chunk
from threadkeep.ports.tools import Progress, Returned
from threadkeep.services.replies import model_requests
from threadkeep.storage.payloads.database import MISSING, SqlPayloads
from threadkeep.testing import Say, ScriptedModel, Status, Think, UseTool, scripted_settings

ROWS = [{"region": "north", "sum": 11}, {"region": "south", "sum": 22}, {"region": "west", "sum": 33}]
AT = 1_767_751_200_000


@pytest.fixture(params=["anthropic", "openai"])
async def either_wire(
    request: pytest.FixtureRequest,
    tools: InMemoryTools,
    model: ScriptedModel,
    tmp_path: Path,
    database_url: str,
) -> AsyncIterator[Talk]:
    settings = scripted_settings(
        model,
        gateway=request.param,
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        embedding_url="off",
    )
    async with talking(settings) as talk:
        yield talk


def sent(model: ScriptedModel) -> list[dict[str, Any]]:
    """The messages of the last request, without a system message."""
    messages = model.requests[-1].body["messages"]
    return messages[1:] if messages[0]["role"] == "system" else messages


def contents(model: ScriptedModel) -> list[str]:
    return [it["content"] for it in sent(model)]


async def test_model_sees_what_its_tools_returned_in_the_next_turn(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel
):
    tools.add(rows=gives(Returned("ok", {"rows": ROWS})))
    model.script(
        [Say("I look it up."), UseTool("rows", {"table": "sales"}, id="call_a")],
        [Say("South is second.")],
        [Say("West, 33.")],
    )
    conversation = await either_wire.titled_conversation()
    reply = await either_wire.ask(conversation, "Which region is second?")
    assert reply["content"] == "I look it up.\n\nSouth is second."
    before = sent(model)
    await either_wire.ask(conversation, "And the third row?")
    assert not model.refused
    told = json.dumps(sent(model), ensure_ascii=False)
    assert json.dumps(json.dumps(ROWS[2]).replace(" ", ""))[1:-1] in told.replace(" ", "")
    assert '"call_a"' in told
    # The request goes on where the turn's last one ended: calls and results are the provider's own blocks.
    assert [it["role"] for it in sent(model)][: len(before)] == [it["role"] for it in before]
    roles = [it["role"] for it in sent(model)]
    expected = {
        "anthropic": ["user", "assistant", "user", "assistant", "user"],
        "openai": ["user", "assistant", "tool", "assistant", "user"],
    }
    assert roles in expected.values()
    assert "And the third row?" in json.dumps(sent(model)[-1])


@ONLY_SQLITE
async def test_what_is_said_between_two_calls_stays_between_them(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel
):
    tools.add(rows=gives(Returned("ok", {"rows": ROWS})))
    model.script(
        [
            Say("Numbers first."),
            UseTool("rows", {"table": "sales"}, id="call_a"),
            Say("Now the handbook."),
            UseTool("rows", {"table": "handbook"}, id="call_b"),
            Say("Waiting."),
        ],
        [Say("Done.")],
        [Say("Yes.")],
    )
    conversation = await either_wire.titled_conversation()
    reply = await either_wire.ask(conversation, "How did it go?")
    assert [it.get("text") or it["toolCallId"] for it in reply["parts"]] == [
        "Numbers first.",
        "call_a",
        "Now the handbook.",
        "call_b",
        "Waiting.",
        "Done.",
    ]
    assert reply["content"] == "Numbers first.\n\nNow the handbook.\n\nWaiting.\n\nDone."
    before = sent(model)
    await either_wire.ask(conversation, "Sure?")
    assert not model.refused
    assert _unmarked(sent(model))[: len(before)] == _unmarked(before)


def _unmarked(messages: list[dict[str, Any]]) -> Any:
    """Messages without Anthropic's cache marks, which move on."""
    return json.loads(json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', ""))


async def test_calls_of_a_reply_are_all_stored_before_the_first_tool_runs(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel
):
    stored: list[int] = []

    async def count(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        (turn,) = await either_wire.store.active.page(after=None, offset=0, limit=9)
        chunks = await either_wire.store.log.read(turn.id, 0)
        events = [event for chunk in chunks for event in decode_chunk(chunk.events)]
        stored.append(sum(isinstance(event.body, ToolCalled) for event in events))
        yield Returned("ok", "counted")

    tools.add(count=count)
    model.script([UseTool("count", {"n": n}) for n in range(40)], [Say("Done.")])
    await either_wire.ask(await either_wire.titled_conversation())
    assert stored == [40] * 40


@ONLY_SQLITE
async def test_tool_that_was_removed_since_stays_in_the_history(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel
):
    tools.add(rows=gives(Returned("ok", {"rows": ROWS})), other=gives(Returned("ok", "")))
    model.script([UseTool("rows", {})], [Say("Yes.")], [Say("Still yes.")])
    conversation = await either_wire.titled_conversation()
    await either_wire.ask(conversation)
    tools.remove("rows")
    assert (await either_wire.ask(conversation))["status"] == "COMPLETED"
    assert not model.refused
    assert "south" in json.dumps(sent(model))


@ONLY_SQLITE
async def test_id_that_the_model_repeats_in_another_turn_is_replaced(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel
):
    tools.add(rows=gives(Returned("ok", "rows")))
    for _ in range(3):
        model.script([UseTool("rows", {}, id="call_1")], [Say("Yes.")])
    conversation = await either_wire.titled_conversation()
    replies = [await either_wire.ask(conversation) for _ in range(3)]
    ids = [it["toolCalls"][0]["toolCallId"] for it in replies]
    assert ids[0] == "call_1"
    assert len(set(ids)) == 3
    assert not model.refused


async def test_role_stays_in_force_when_its_call_has_left_the_window(talk: Talk, model: ScriptedModel):
    model.script([UseTool("promptx_action", {"role": "assistant"})], [Say("I am.")])
    conversation = await talk.titled_conversation(settings={"contextMessages": 2})
    for number in range(4):
        await talk.ask(conversation, f"question {number}")
    systems = [it.body["messages"][0]["content"] for it in model.requests]
    assert "You have activated the role" not in systems[0]
    assert all("You have activated the role `assistant`" in it for it in systems[2:])
    assert systems[2] == systems[-1]


async def test_large_result_is_sent_again_as_the_model_saw_it_and_then_shortened(
    talk: Talk, model: ScriptedModel
):
    rows = [{"n": number, "text": "x" * 50} for number in range(400)]
    chart = {"kind": "bar", "rows": rows, "x": "text", "y": ["n"]}
    conversation = await talk.titled_conversation(settings={"toolResultTokens": 1000})
    model.script([UseTool("make_chart", chart)], [Say("Drawn.")])
    first = await talk.ask(conversation)
    assert first["toolCalls"][0]["status"] == "ok", first["toolCalls"]
    for _ in range(3):
        assert (await talk.ask(conversation))["status"] == "COMPLETED"
    assert not model.refused


async def test_large_results_are_loaded_while_they_are_sent_whole_and_built_in_a_thread(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    loaded: list[int] = []
    on_the_loop: list[bool] = []
    load, build = SqlPayloads.load, model_requests.build_request

    async def counted(
        self: SqlPayloads, conversation_id: ConversationId, ids: Iterable[PayloadId], **limits: Any
    ) -> Mapping[PayloadId, bytes | Lost]:
        found = await load(self, conversation_id, ids, **limits)
        loaded.append(len(found))
        return found

    def noted(sources: Sources, rules: ContextRules) -> BuiltRequest:
        on_the_loop.append(threading.current_thread() is threading.main_thread())
        return build(sources, rules)

    tools.add(rows=gives(Returned("ok", "x" * 18_000)))
    model.script([UseTool("rows", {"n": n}) for n in range(20)], [Say("Many.")], [Say("A.")], [Say("B.")])
    conversation = await either_wire.titled_conversation(settings={"toolResultTokens": 4000})
    await either_wire.ask(conversation)
    monkeypatch.setattr(SqlPayloads, "load", counted)
    monkeypatch.setattr(model_requests, "build_request", noted)
    for _ in range(2):
        assert (await either_wire.ask(conversation))["status"] == "COMPLETED"
    assert loaded == [20, 0]  # when they become shorter, and never again
    assert on_the_loop == [False, True]
    assert not model.refused


async def test_conversation_goes_on_when_a_large_result_is_lost(
    either_wire: Talk, tools: InMemoryTools, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    async def load(
        _: SqlPayloads, conversation_id: ConversationId, ids: Iterable[PayloadId], **limits: Any
    ) -> Mapping[PayloadId, Lost]:
        return dict.fromkeys(ids, MISSING)

    tools.add(rows=gives(Returned("ok", "x" * 60_000)))
    model.script([UseTool("rows", {}, id="call_a")], [Say("Many.")], [Say("Gone.")])
    conversation = await either_wire.titled_conversation()
    await either_wire.ask(conversation)
    monkeypatch.setattr(SqlPayloads, "load", load)
    assert (await either_wire.ask(conversation, "And the third row?"))["content"] == "Gone."
    assert "[The result is no longer available: The content is missing.]" in json.dumps(sent(model))
    assert not model.refused


@ONLY_SQLITE
async def test_model_gets_thoughts_where_the_agent_wants_them(talk: Talk, model: ScriptedModel):
    model.script([Think("Hm. "), Think("Yes."), Say("Because.")], [Say("Again.")])
    conversation = await talk.titled_conversation(settings={"contextThoughts": True})
    await talk.ask(conversation, "Why?")
    await talk.ask(conversation, "Really?")
    expected = ["Why?", "<thinking>\nHm. Yes.\n</thinking>\n\nBecause.", "Really?"]
    assert contents(model) == expected
    context = await talk.client.get(f"/api/conversations/{conversation}/context")
    assert [it["content"] for it in context.json()["messages"]] == [*expected, "Again."]
    assert not model.refused


async def test_regenerated_question_is_asked_although_a_card_came_after_it(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ProviderGateway, "context_tokens", property(lambda _: 1024 + 40), raising=False)
    conversation_id = await talk.titled_conversation(settings={"contextMessages": 1})
    await talk.ask(conversation_id, "Why?")
    conversation = await talk.store.conversations.get(UserId("local"), ConversationId(conversation_id))
    assert conversation
    briefing = Briefing(
        id=BriefingId(new_uuid()),
        agent_id=conversation.agent_id,
        user_id=conversation.user_id,
        title="Title",
        summary="long " * 99,
        priority=Priority.P1,
        data=None,
        actions=(),
        created_at=AT,
    )
    await talk.store.messages.add_card(*conversation.add_card(briefing, AT))
    await talk.client.post(f"/api/conversations/{conversation_id}/regenerate")
    assert contents(model) == ["Why?"]


async def test_window_grows_to_twenty_and_then_steps_back_to_twelve(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    for number in range(12):
        await talk.ask(conversation, f"question {number}")
    counts = [len(it.body["messages"]) - 1 for it in model.requests]
    # With twelve the first is a reply, with which no request begins.
    assert counts == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 11, 13]
    assert contents(model)[-1] == "question 11"


async def test_window_stays_where_it_started_after_a_reply_without_text(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    model.script(*([Say("OK.")] for _ in range(8)), [Status(400, "No.")])
    for number in range(30):
        await talk.ask(conversation, f"question {number}")
    firsts = [it.body["messages"][1]["content"] for it in model.requests]
    # It moves by large steps only.
    assert [*dict.fromkeys(firsts)] == [f"question {number}" for number in (0, 5, 11, 16, 21)]


async def stepped_conversation(talk: Talk, model: ScriptedModel) -> str:
    """One whose window has just moved by a large step: it has fewer than the latest twenty messages."""
    conversation = await talk.titled_conversation()
    for number in range(11):
        await talk.ask(conversation, f"question {number}")
    assert contents(model)[0] == "question 5"
    return conversation


async def edit_the_last_question(talk: Talk, conversation: str) -> None:
    question = (await talk.messages(conversation))[-2]
    body = {"content": "edited", "parentId": question["parentId"]}
    await talk.client.post(f"/api/conversations/{conversation}/messages?wait=true", json=body)


async def regenerate(talk: Talk, conversation: str) -> None:
    await talk.client.post(f"/api/conversations/{conversation}/regenerate?wait=true")


async def choose_the_other_branch(talk: Talk, conversation: str) -> None:
    old = (await talk.messages(conversation))[-1]["id"]
    await regenerate(talk, conversation)
    await talk.client.post(f"/api/conversations/{conversation}/path", json={"messageId": old})
    await talk.ask(conversation, "next")


@pytest.mark.parametrize("change", [edit_the_last_question, regenerate, choose_the_other_branch])
async def test_window_is_built_anew_when_the_path_changes(
    talk: Talk, model: ScriptedModel, change: Callable[[Talk, str], Awaitable[None]]
):
    conversation = await stepped_conversation(talk, model)
    await change(talk, conversation)
    # Twenty messages; the first of them is a reply, with which no request begins.
    assert len(contents(model)) == 19
    await talk.ask(conversation, "and on")
    assert len(contents(model)) == 11  # the path is the same again, and the window moves by its step


async def test_first_window_of_a_long_conversation_has_the_latest_twenty(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation(settings={"contextMessages": 1})
    for number in range(15):
        await talk.ask(conversation, f"question {number}")
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    await talk.client.patch(f"/api/agents/{agent}", json={"settings": {"contextMessages": 20}})
    await talk.ask(conversation, "the last one")
    assert contents(model)[-1] == "the last one"
    assert len(contents(model)) <= 20


@ONLY_SQLITE
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_question_is_asked_however_little_context_an_agent_wants(
    talk: Talk, model: ScriptedModel, count: int
):
    conversation = await talk.titled_conversation(settings={"contextMessages": count})
    for number in range(3):
        assert (await talk.ask(conversation, f"question {number}"))["status"] == "COMPLETED"
    assert contents(model) == ["question 1", "OK.", "question 2"][-1 if count < 3 else 0 :]
    await talk.client.post(f"/api/conversations/{conversation}/regenerate")
    assert contents(model)[-1] == "question 2"
    assert not model.refused


async def test_receipt_says_how_much_of_the_request_the_previous_one_had(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    shares: list[float | None] = []
    for _ in range(3):
        turn_id = (await talk.ask(conversation, "What about this? " * 20))["turnId"]
        shares.append((await talk.client.get(f"/api/turns/{turn_id}/context")).json()["prefixShare"])
    assert shares[0] is None
    assert all(share is not None and share > 0.7 for share in shares[1:])
