"""What a model is sent: whatever happened, a request that every provider accepts, with all that happened."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.context.histories import (
    AT,
    SECRET_THOUGHT,
    Chance,
    Conversation,
    call,
    card,
    exchanges,
)
from threadkeep.context.cards import CardStyle
from threadkeep.context.estimates import estimate_tokens
from threadkeep.context.history import read_refs
from threadkeep.context.passages import numbered_passages, passages_text
from threadkeep.context.prompt import Component
from threadkeep.context.rendering import common_share, line_of
from threadkeep.context.request import (
    BuiltRequest,
    ContextRules,
    Sources,
    build_request,
    rebuild_request,
    to_context,
)
from threadkeep.context.tool_results import MOST_RESULT_CHARACTERS, Excerpt, model_reads
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    citations_of,
    text_parts,
)
from threadkeep.domain.payload import Lost, text_hash
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.retrieval import PassageNumbers, RetrievalHit
from threadkeep.domain.tool_call import MODEL_READS, ToolCallStatus
from threadkeep.gateways.anthropic import anthropic_body
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.openai import openai_body
from threadkeep.gateways.responses import responses_body
from threadkeep.ports.gateway import (
    ModelMessage,
    ModelRequest,
    TextBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
)
from threadkeep.testing.provider_rules import (
    check_anthropic_request,
    check_openai_request,
    check_responses_request,
)

SHANGHAI = ZoneInfo("Asia/Shanghai")
TOOLS = (ToolSpec("sums__add", "Adds.", {"type": "object", "properties": {}}),)
HISTORIES = 500
PLENTY = ContextRules(cards=CardStyle(), context_tokens=1_000_000)


def build(
    messages: Sequence[Message],
    rules: ContextRules = PLENTY,
    *,
    tools: Sequence[ToolSpec] = TOOLS,
    prior: Receipt | None = None,
    **sources: Any,
) -> BuiltRequest:
    question = next(it for it in reversed(messages) if it.role is MessageRole.USER)
    return build_request(
        Sources(
            path=messages, question_id=question.id, tools=tools, prior=prior, model="default/m", **sources
        ),
        rules,
    )


def bodies(request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return anthropic_body(request, "m"), openai_body(request, "m"), responses_body(request, "m")


def texts(request: ModelRequest) -> list[list[str]]:
    return [[it.text for it in message.blocks if isinstance(it, TextBlock)] for message in request.messages]


def result_texts(request: ModelRequest) -> list[str]:
    return [
        it.content for message in request.messages for it in message.blocks if isinstance(it, ToolResultBlock)
    ]


def check_valid(built: BuiltRequest) -> None:
    for_anthropic, for_openai, for_responses = bodies(built.request)
    assert not check_anthropic_request(for_anthropic)
    assert not check_openai_request(for_openai)
    assert not check_responses_request(for_responses)


# Any history


@pytest.mark.parametrize("first", range(0, HISTORIES, 250))
def test_every_history_makes_a_request_that_every_provider_accepts(first: int):
    """Turns, aborts, crashes, regenerations, cards, lost values, compactions, window cuts, in any order."""
    for seed in range(first, first + 250):
        try:
            _live_through(Chance(seed))
        except AssertionError as exc:
            raise AssertionError(f"history {seed}") from exc


def _live_through(chance: Chance) -> None:
    conversation, prior, archived_to = Conversation(), None, 0
    components = [Component("a", chance.words()), Component("b", chance.blank())]
    rules = ContextRules(
        cards=CardStyle(),
        context_tokens=chance.random.choice([300, 1400, 3000, 200_000]),
        context_messages=chance.random.choice([0, 1, 3, 8, 20]),
        result_tokens=chance.random.choice([0, 500]),
        thoughts=chance.once_in(2),
    )
    for _ in range(chance.random.randrange(1, 16)):
        if chance.once_in(5):
            conversation.tell(card(chance.words(), chance.words()))
        question = conversation.ask(chance.words())
        tools = chance.random.choice([TOOLS, TOOLS, ()])  # a model without tools in between
        path = [it for it in conversation.messages if it.on_path and it.seq > archived_to]
        path = path[-rules.context_messages :] if rules.context_messages else path
        payloads = {ref: chance.payloads[ref] for ref in _loaded(path, prior if tools else None)}
        built = build(path, rules, tools=tools, prior=prior, components=components, payloads=payloads)
        check_valid(built)
        _check_window(built, path, question, rules)
        assert rebuild_request(built.receipt, built.texts) == built.request
        if not chance.once_in(6):  # else its process died before the receipt was kept
            prior = built.receipt
        if chance.once_in(6):
            conversation.add(MessageRole.ASSISTANT, *chance.reply(f"t{question.seq}"), on_path=False)
        conversation.add(MessageRole.ASSISTANT, *chance.reply(f"u{question.seq}"))
        if chance.once_in(6):
            archived_to = chance.random.randint(archived_to, question.seq - 1)


def _loaded(path: Sequence[Message], prior: Receipt | None) -> Iterator[PayloadId]:
    for message in path:
        for it in message.tool_calls:
            yield from read_refs(it, is_short=prior is not None and it.sent_id in prior.shortened)


def _check_window(
    built: BuiltRequest, path: Sequence[Message], question: Message, rules: ContextRules
) -> None:
    request, receipt, _ = built
    kept = [it for it in path if it.id in receipt.message_ids]
    assert [it.id for it in kept] == [*receipt.message_ids]
    assert question in kept
    assert texts(request)[-1][-1] == question.content
    assert not rules.context_messages or len(kept) <= max(rules.context_messages, 1)
    assert rules.thoughts or SECRET_THOUGHT not in str(request)
    # Within the limit, unless the system prompt and the question alone are too much.
    assert receipt.token_estimate <= rules.context_tokens or len(kept) == 1


# What happened


def test_earlier_tool_calls_go_back_with_their_results_in_order():
    conversation = Conversation()
    conversation.ask("How did we do?")
    conversation.reply(
        TextPart(text="First the numbers.", iteration=1),
        ToolCallPart(call=call("a", {"rows": [1, 2, 3]}, model_name="sales__rows"), iteration=1),
        ToolCallPart(call=call("b", "", arguments={"q": "x"}, model_name="add"), iteration=1),
        TextPart(text="Revenue grew.", iteration=2),
    )
    conversation.ask("And the third row?")
    request = build(conversation.messages).request
    assert [it.role for it in request.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert request.messages[1].blocks == (
        TextBlock("First the numbers."),
        ToolUseBlock("a", "sales__rows", {}),
        ToolUseBlock("b", "add", {"q": "x"}),
    )
    assert request.messages[2].blocks == (
        ToolResultBlock("a", '{"rows":[1,2,3]}', is_error=False),
        ToolResultBlock("b", "", is_error=False),
    )


def test_turn_that_was_stopped_in_its_tools_has_a_result_for_every_call():
    conversation = Conversation()
    conversation.ask("Go")
    conversation.reply(
        ToolCallPart(call=call("a", None, status=ToolCallStatus.INTERRUPTED, error="Stopped."), iteration=1),
        ToolCallPart(call=call("b", None, status=ToolCallStatus.RUNNING), iteration=1),
        status=MessageStatus.CANCELLED,
    )
    conversation.ask("Go on")
    built = build(conversation.messages)
    check_valid(built)
    assert [
        it.tool_use_id for it in built.request.messages[-1].blocks if isinstance(it, ToolResultBlock)
    ] == [
        "a",
        "b",
    ]
    assert texts(built.request)[-1] == ["Go on"]


def test_model_without_tools_reads_earlier_calls_as_text():
    conversation = exchanges(1, result="found")
    conversation.ask("?")
    request = build(conversation.messages, tools=()).request
    assert all(isinstance(block, TextBlock) for message in request.messages for block in message.blocks)
    assert "add" in texts(request)[1][0]
    assert "1 found" in texts(request)[1][0]


def sent_ids(request: ModelRequest) -> list[str]:
    return [it.id for message in request.messages for it in message.blocks if isinstance(it, ToolUseBlock)]


def test_ids_of_older_records_are_replaced_the_same_way_whatever_the_window():
    conversation = Conversation()
    for number in range(3):
        conversation.ask("?")
        used = call("call_1" if number else "not ok!", turn=f"t{number}", model_name="")
        conversation.reply(ToolCallPart(call=used, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    whole, latest = build(conversation.messages), build(conversation.messages[-3:])
    check_valid(whole)
    assert len({*sent_ids(whole.request)}) == 3
    assert sent_ids(latest.request) == sent_ids(whole.request)[2:]


def test_only_the_larger_of_two_results_with_the_same_id_is_shortened():
    conversation = Conversation()
    for number, result in enumerate(["A" * 9000, "B"]):
        conversation.ask("?")
        used = call("call_0", result, turn=f"t{number}", model_name="")
        conversation.reply(ToolCallPart(call=used, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=1000))
    first, second = result_texts(built.request)
    assert f'"{sent_ids(built.request)[0]}"' in first
    assert second == "B"
    assert built.receipt.shortened == (sent_ids(built.request)[0],)


def test_ids_that_a_provider_refuses_or_that_repeat_are_replaced():
    conversation = Conversation()
    for number, id_ in enumerate(["not ok!", "call_1", "call_1"]):
        conversation.ask("?")
        used = ToolCallPart(call=call(id_, turn=f"t{number}"), iteration=1)
        conversation.reply(used, TextPart(text="!", iteration=2))
    conversation.ask("?")
    first, second = build(conversation.messages), build(conversation.messages)
    check_valid(first)
    assert first.request == second.request
    assert sent_ids(first.request)[1] == "call_1"


def test_what_was_said_before_a_stop_or_a_failure_is_context():
    conversation = Conversation()
    conversation.ask("A")
    conversation.reply("half", status=MessageStatus.CANCELLED)
    conversation.ask("B")
    conversation.reply(status=MessageStatus.FAILED)
    conversation.ask("C")
    conversation.add(MessageRole.ASSISTANT, text_parts("old"), on_path=False)
    conversation.reply("new")
    conversation.ask("D")
    request = build(conversation.messages).request
    assert texts(request) == [["A"], ["half"], ["B", "C"], ["new"], ["D"]]


def test_superseded_parts_are_not_sent():
    conversation = Conversation()
    conversation.ask("A")
    conversation.reply(
        TextPart(text="cut o", iteration=1, superseded=True), TextPart(text="cut off", iteration=1)
    )
    conversation.ask("B")
    assert texts(build(conversation.messages).request) == [["A"], ["cut off"], ["B"]]


def test_passages_stay_before_the_question_that_they_were_found_for():
    hit = RetrievalHit("handbook.pdf", "Thirty days.", 0.9, document_id="d", page=3)
    conversation = Conversation()
    asked = conversation.ask("How long?")
    first = build(conversation.messages, found=[hit])
    conversation.reply(
        RetrievalPart(query="How long?", hits=(hit,), at=AT), TextPart(text="30 [1].", iteration=1)
    )
    conversation.ask("Sure?")
    second = build(conversation.messages, prior=first.receipt)
    assert "[1] handbook.pdf, page 3\nThirty days." in texts(first.request)[0][0]
    assert texts(first.request)[0][1] == asked.content
    assert second.request.messages[0] == first.request.messages[0]
    assert texts(second.request)[-1] == ["Sure?"]


def test_passages_stay_before_a_question_whose_reply_failed_without_text():
    hit = RetrievalHit("handbook.pdf", "Thirty days.", 0.9, document_id="d", page=3)
    conversation = Conversation()
    conversation.ask("How long?")
    first = build(conversation.messages, found=[hit])
    conversation.reply(RetrievalPart(query="How long?", hits=(hit,), at=AT), status=MessageStatus.FAILED)
    conversation.ask("Again: how long?")
    second = build(conversation.messages, prior=first.receipt)
    assert texts(second.request) == [[*texts(first.request)[0], "Again: how long?"]]


def test_components_are_the_system_prompt_and_blank_ones_are_left_out():
    parts = [
        Component("systemPrompt", "Be brief."),
        Component("role", " \u200b"),
        Component("summary", "So far."),
    ]
    conversation = Conversation()
    conversation.ask("?")
    request, receipt, _ = build(conversation.messages, components=parts)
    assert request.system == "Be brief.\n\nSo far."
    assert [(it.name, it.length) for it in receipt.components] == [("systemPrompt", 9), ("summary", 7)]


@pytest.mark.parametrize(("zone", "hour"), [(UTC, "02:00"), (SHANGHAI, "10:00")])
def test_card_is_rendered_exactly(zone: Any, hour: str):
    expected = f"[简报 2026-01-07 {hour}]\n标题：政策更新\n摘要：新规发布。\n优先级：P1"
    assert CardStyle(zone).render(card()) == expected


def test_card_reads_in_the_operators_language():
    expected = "[Briefing 2026-01-07 02:00]\nTitle: 政策更新\nSummary: 新规发布。\nPriority: P1"
    assert CardStyle(UTC, "en").render(card()) == expected


@pytest.mark.parametrize(("length", "shown"), [(500, "长" * 500), (501, "长" * 500 + "...")])
def test_long_summary_of_a_card_is_cut(length: int, shown: str):
    assert f"\n摘要：{shown}\n优先级" in CardStyle().render(card(summary="长" * length))


def test_cards_are_the_users_words_and_thoughts_stay_out():
    conversation = Conversation()
    conversation.ask("A")
    conversation.tell(card())
    conversation.reply(ThoughtPart(text=SECRET_THOUGHT, started_at=AT), "B")
    conversation.ask("C")
    request = build(conversation.messages, replace(PLENTY, cards=CardStyle(SHANGHAI))).request
    assert texts(request) == [["A", CardStyle(SHANGHAI).render(card())], ["B"], ["C"]]
    entries = to_context(conversation.messages, summary="Before.", cards=CardStyle(SHANGHAI))
    assert [it.role for it in entries] == ["user", "user", "user", "assistant", "user"]
    assert SECRET_THOUGHT not in str(entries)


def test_thoughts_go_with_the_replies_where_the_agent_wants_them():
    conversation = Conversation()
    conversation.ask("A")
    conversation.reply(ThoughtPart(text=SECRET_THOUGHT, started_at=AT), "B")
    conversation.reply(ThoughtPart(text="nothing else", started_at=AT), status=MessageStatus.FAILED)
    conversation.ask("C")
    request, receipt, _ = build(conversation.messages, replace(PLENTY, thoughts=True))
    assert texts(request) == [["A"], [f"<thinking>\n{SECRET_THOUGHT}\n</thinking>", "B"], ["C"]]
    assert (receipt.thoughts, receipt.message_ids) == (True, ("m1", "m2", "m4"))
    entries = to_context(conversation.messages, summary=None, cards=CardStyle(), thoughts=True)
    assert entries[1].content == f"<thinking>\n{SECRET_THOUGHT}\n</thinking>\n\nB"


# The window


def windows(conversation: Conversation, rules: ContextRules, asked: int) -> list[BuiltRequest]:
    """The requests of a conversation that goes on, each built with the receipt of the one before."""
    built: list[BuiltRequest] = []
    for number in range(asked):
        conversation.ask(f"next {number}")
        latest = conversation.messages[-rules.context_messages :]
        built.append(build(latest, rules, prior=built[-1].receipt if built else None))
        conversation.reply(f"reply {number}")
    return built


def test_first_window_has_exactly_the_latest_twenty():
    conversation = exchanges(25)
    rules = replace(PLENTY, context_messages=20)
    (first,) = windows(conversation, rules, 1)
    assert len(first.receipt.message_ids) == 20


def test_window_stays_where_it_started_and_then_moves_by_a_large_step():
    rules = replace(PLENTY, context_messages=20)
    built = windows(Conversation(), rules, 20)
    sizes = [len(it.receipt.message_ids) for it in built]
    assert sizes == [*range(1, 20, 2), 12, 14, 16, 18, 20, 12, 14, 16, 18, 20]
    starts = [it.receipt.first_seq for it in built]
    assert len(set(starts)) == 3


def test_request_that_only_grows_begins_with_the_whole_previous_one():
    built = windows(Conversation(), replace(PLENTY, context_messages=20), 10)
    for before, after in pairwise(built):
        previous, sent = (encode(anthropic_body(it.request, "m")["messages"]) for it in (before, after))
        assert sent.startswith(previous[:-1])
        assert after.receipt.prefix_share is not None
        assert after.receipt.prefix_share > 0.5


def test_small_window_slides():
    built = windows(exchanges(5), replace(PLENTY, context_messages=3), 4)
    assert {len(it.receipt.message_ids) for it in built} == {3}


def test_window_moves_by_a_large_step_where_the_tokens_do_not_fit():
    conversation = Conversation()
    for letter in "abcdefghij":
        conversation.ask(letter * 400)
        conversation.reply(letter * 400)
    conversation.ask("e" * 400)
    size = estimate_tokens("a" * 400) + 4
    tools = estimate_tokens(json.dumps([TOOLS[0].name, TOOLS[0].description])) + 40
    rules = replace(PLENTY, context_tokens=1024 + tools + 10 * size)
    first = build(conversation.messages, rules)
    assert 4 <= len(first.receipt.message_ids) <= 6
    assert first.receipt.dropped_messages == 21 - len(first.receipt.message_ids)
    conversation.reply("so")
    conversation.ask("on")
    second = build(conversation.messages, rules, prior=first.receipt)
    assert second.receipt.first_seq == first.receipt.first_seq


def test_question_larger_than_the_window_is_still_asked():
    conversation = exchanges(1)
    conversation.ask("e" * 9000)
    request, receipt, _ = build(conversation.messages, replace(PLENTY, context_tokens=100))
    assert texts(request) == [["e" * 9000]]
    assert receipt.dropped_messages == 2


# Large results


def test_results_beyond_the_budget_shrink_at_once_and_stay_short():
    rules = replace(PLENTY, result_tokens=10_000)
    conversation = exchanges(8, result="x" * 4000)  # 1,000 tokens each
    conversation.ask("?")
    within = build(conversation.messages, rules)
    assert not within.receipt.shortened
    for number in range(9, 12):
        conversation.reply(
            ToolCallPart(call=call(f"call_{number}", f"{number} " + "y" * 4000), iteration=1),
            TextPart(text="!", iteration=2),
        )
        conversation.ask("?")
    beyond = build(conversation.messages, rules, prior=within.receipt)
    assert beyond.receipt.shortened == tuple(sorted(f"call_{number}" for number in range(1, 9)))
    sent = result_texts(beyond.request)
    assert all(len(it) < 1100 and "recall_result" in it for it in sent[:8])
    assert all(len(it) > 4000 for it in sent[8:])
    assert sum(map(estimate_tokens, sent)) <= 5_000
    conversation.reply("!")
    conversation.ask("?")
    later = build(conversation.messages, rules, prior=beyond.receipt)
    assert later.receipt.shortened == beyond.receipt.shortened
    assert result_texts(later.request) == sent


def test_shortened_result_tells_what_it_was_and_how_to_read_it_again():
    conversation = exchanges(1, result=f"begin {'x' * 9000} end")
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=1000))
    (sent,) = result_texts(built.request)
    assert '"call_1"' in sent
    assert "add" in sent
    assert "begin" in sent
    assert sent.endswith(" end")


@pytest.mark.parametrize(("count", "size"), [(50, 3000), (100, 900), (240, 18_000)])
def test_many_results_keep_to_the_budget_however_small_they_are(count: int, size: int):
    rules = replace(PLENTY, result_tokens=8000)
    conversation = Conversation()
    conversation.ask("?")
    used = (
        ToolCallPart(call=call(f"c{number}", f"{number} " + "x" * size), iteration=1)
        for number in range(count)
    )
    conversation.reply(*used, TextPart(text="!", iteration=2))
    conversation.ask("?")
    first = build(conversation.messages, rules)
    sent = result_texts(first.request)
    assert len(sent) == count
    assert sum(map(estimate_tokens, sent)) <= rules.result_tokens
    assert {*first.receipt.outlined} <= {*first.receipt.shortened}
    for at in range(3):  # what is shorter stays so
        conversation.reply(f"answer {at}")
        conversation.ask("?")
        later = build(conversation.messages, rules, prior=first.receipt)
        assert result_texts(later.request) == sent


def test_large_result_shrinks_before_older_ones_that_are_small():
    conversation = Conversation()
    for number, size in enumerate([900, 900, 16_000, 900]):
        conversation.ask("?")
        used = ToolCallPart(call=call(f"c{number}", "x" * size), iteration=1)
        conversation.reply(used, TextPart(text="!", iteration=2))
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=2000))
    assert built.receipt.shortened == ("c2",)


def test_outline_of_a_result_tells_its_tool_size_and_id():
    conversation = Conversation()
    conversation.ask("?")
    used = (ToolCallPart(call=call(f"c{number}", "x" * 900), iteration=1) for number in range(20))
    conversation.reply(*used, TextPart(text="!", iteration=2))
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=1000))
    assert result_texts(built.request)[0] == '[add: 900 characters; recall_result with id "c0"]'


def test_request_without_tools_shortens_no_result():
    conversation = exchanges(20, result="x" * 4000)
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=1000), tools=())
    assert (built.receipt.shortened, built.receipt.outlined) == ((), ())


def test_shortened_result_in_the_payload_store_is_not_needed_any_more():
    conversation = Conversation()
    shown = "begin " + "y" * 9000 + " end"
    refs = {"result": PayloadId("p1"), MODEL_READS: PayloadId("p2")}
    carried = Excerpt.of(shown).to_store()
    conversation.ask("?")
    stored = call("a", carried, refs=refs)
    conversation.reply(ToolCallPart(call=stored, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    rules = replace(PLENTY, result_tokens=1000)
    payloads = {PayloadId("p2"): encode(shown)}
    first = build(conversation.messages, rules, payloads=payloads)
    assert first.receipt.shortened == ("a",)
    assert [*read_refs(stored, is_short=False)] == ["p2"]
    assert [*read_refs(stored, is_short=True)] == []
    second = build(conversation.messages, rules, payloads={}, prior=first.receipt)
    assert result_texts(second.request) == result_texts(first.request)


@pytest.mark.parametrize("is_aside", [False, True])
def test_result_that_was_cut_on_arrival_is_shortened_with_its_own_tail(is_aside: bool):
    conversation = Conversation()
    whole = "begin " + "y" * 9000 + " end"
    note = "This server restarted and lost its state.\n"
    received = model_reads("a", note + whole, 1000)
    refs = {MODEL_READS: PayloadId("p2")} | ({"result": PayloadId("p1")} if is_aside else {})
    payloads = {PayloadId("p1"): encode(whole), PayloadId("p2"): encode(received)}
    conversation.ask("?")
    stored = call("a", None if is_aside else whole, refs=refs)
    conversation.reply(ToolCallPart(call=stored, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    built = build(conversation.messages, replace(PLENTY, result_tokens=500), payloads=payloads)
    (text,) = result_texts(built.request)
    assert built.receipt.shortened == ("a",)
    assert f"shortened from {len(whole)} characters" in text
    assert note + "begin y" in text
    assert text.endswith("y end")


@pytest.mark.parametrize("result", ["", None, [], {}, 0, False])
def test_empty_result_is_a_valid_result(result: Any):
    conversation = Conversation()
    conversation.ask("?")
    conversation.reply(ToolCallPart(call=call("a", result), iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    check_valid(build(conversation.messages))


def test_emoji_at_the_edge_of_the_budget_is_not_cut_in_half():
    conversation = Conversation()
    conversation.ask("?")
    text = "x" * (MOST_RESULT_CHARACTERS - 1) + "😀" * 50
    conversation.reply(ToolCallPart(call=call("a", text), iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    built = build(conversation.messages)
    check_valid(built)
    (sent,) = result_texts(built.request)
    assert sent.startswith("x" * (MOST_RESULT_CHARACTERS - 1) + "😀\n…")


def test_result_in_the_payload_store_is_sent_as_the_model_saw_it():
    refs = {"result": PayloadId("p1"), MODEL_READS: PayloadId("p2")}
    conversation = Conversation()
    conversation.ask("?")
    stored = call("a", None, refs=refs)
    conversation.reply(ToolCallPart(call=stored, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    payloads = {PayloadId("p2"): encode("the beginning …")}
    assert result_texts(build(conversation.messages, payloads=payloads).request) == ["the beginning …"]


def test_result_of_an_older_record_is_cut_when_it_is_sent():
    conversation = Conversation()
    conversation.ask("?")
    stored = call("a", None, refs={"result": PayloadId("p1")})
    conversation.reply(ToolCallPart(call=stored, iteration=1), TextPart(text="!", iteration=2))
    conversation.ask("?")
    payloads = {PayloadId("p1"): encode({"rows": ["z" * 30_000]})}
    (sent,) = result_texts(build(conversation.messages, payloads=payloads).request)
    assert sent.startswith('{"rows":["zzz')
    assert len(sent) < 21_000


def test_values_that_are_lost_are_sent_as_no_longer_available():
    refs = {name: PayloadId(name) for name in ("arguments", "result", MODEL_READS)}
    conversation = Conversation()
    conversation.ask("?")
    conversation.reply(
        ToolCallPart(call=call("a", None, refs=refs), iteration=1), TextPart(text="!", iteration=2)
    )
    conversation.ask("?")
    lost = dict.fromkeys(refs.values(), Lost("The content is missing."))
    built = build(conversation.messages, payloads=lost)
    check_valid(built)
    assert result_texts(built.request) == ["[The result is no longer available: The content is missing.]"]
    (used,) = (it for it in built.request.messages[1].blocks if isinstance(it, ToolUseBlock))
    assert used.arguments == {"unavailable": True, "reason": "The content is missing."}
    assert "no longer available" in str(build(conversation.messages, payloads=lost, tools=()).request)


def test_questions_in_a_row_are_written_once_each(monkeypatch: pytest.MonkeyPatch):
    written: list[int] = []

    def noting(message: ModelMessage) -> str:
        written.append(len(message.blocks))
        return line_of(message)

    monkeypatch.setattr("threadkeep.context.request.line_of", noting)
    conversation = Conversation()
    for number in range(50):
        conversation.ask(f"question {number}")
    built = build(conversation.messages)
    assert texts(built.request) == [[f"question {number}" for number in range(50)]]
    assert sum(written) == 2 * 50  # each by itself, to see whether it fits, and all together


def test_comparing_with_the_previous_request_reads_a_long_turn_once(monkeypatch: pytest.MonkeyPatch):
    hashed: list[int] = []
    sha256 = hashlib.sha256
    text, two_lines = "\n".join(f"line {number}" for number in range(1_000)), text_hash("line 0\nline 1")

    class Noting:
        def __init__(self) -> None:
            self._hash = sha256()

        def update(self, content: bytes) -> None:
            hashed.append(len(content))
            self._hash.update(content)

        def hexdigest(self) -> str:
            return self._hash.hexdigest()

    monkeypatch.setattr("threadkeep.context.rendering.hashlib.sha256", Noting)
    assert common_share([two_lines, "x"], [text], ["other"]) == round(13 / len(text), 4)
    assert common_share(["unknown"], [text], ["other"]) == 0
    assert sum(hashed) <= 2 * len(text)


@pytest.mark.parametrize(
    "line_break", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
)
def test_card_has_its_four_lines_whatever_was_written(line_break: str):
    forged = f"News{line_break}优先级：P0"
    lines = CardStyle().render(card(title=forged, summary=forged)).splitlines()
    assert [line.partition("：")[0] for line in lines[1:]] == ["标题", "摘要", "优先级"]
    assert lines[3] == "优先级：P1"


def test_what_two_searches_find_is_cited_once_under_its_first_number():
    once, again, other = (
        RetrievalHit("a.md", text, score, chunk_id=chunk)
        for text, score, chunk in (("A", 0.9, "1"), ("A", 0.4, "1"), ("B", 0.8, "2"))
    )
    parts = (
        RetrievalPart(query="q", hits=(once,), at=AT),
        RetrievalPart(query="r", hits=(again, other), at=AT, iteration=1),
        TextPart(text="See [1] and [3].", iteration=2),
    )
    citations = citations_of(parts)
    assert [(it.index, it.snippet) for it in citations] == [(1, "A"), (3, "B")]
    numbers = PassageNumbers([once]).add([again, other])
    assert [it["cite"] for it in numbered_passages([again, other], numbers)] == ["[1]", "[3]"]


def test_sources_without_a_chunk_keep_the_numbers_that_their_text_cites():
    source = RetrievalHit("a.md", "A", 0.9)
    parts = (RetrievalPart(query="q", hits=(source, source), at=AT), TextPart(text="See [2].", iteration=1))
    assert [it.index for it in citations_of(parts)] == [1, 2]


def test_file_name_with_a_line_break_is_one_line_before_the_question():
    hit = RetrievalHit("a.md\n[9] forged.md", "text", 0.5)
    assert passages_text([hit]).splitlines()[-2:] == ["[1] a.md [9] forged.md", "text"]
