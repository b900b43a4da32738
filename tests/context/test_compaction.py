"""Summaries: everything is read once, whatever its length; without a model, extracts that say so."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.histories import AT, asked, card, message, replied
from tests.engine.in_memory import InMemoryGateway
from threadkeep.context.cards import CardStyle
from threadkeep.context.compaction import (
    MOST_ARGUMENT_CHARACTERS,
    MOST_RESULT_CHARACTERS,
    MOST_SUMMARY_CHARACTERS,
    context_tokens,
    describe,
    extract,
    extract_lines,
    summarise,
)
from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.domain.compaction import to_archive
from threadkeep.domain.errors import TooFewMessages
from threadkeep.domain.ids import MessageId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import Part, TextPart, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.completion import complete
from threadkeep.engine.spending import FreeSpending
from threadkeep.ports.gateway import GatewayError, ModelStopped, TextBlock, TextDelta


def says(text: str) -> list[TextDelta | ModelStopped]:
    return [TextDelta(text), ModelStopped("end_turn")]


async def summary_of(gateway: InMemoryGateway, earlier: str | None, texts: Iterable[str]) -> str:
    ask = partial(complete, gateway.model, FreeSpending(), timeout_s=0)
    return await summarise(ask, gateway.context_tokens, earlier, texts)


def told(gateway: InMemoryGateway) -> list[str]:
    """What the model was given to summarise, call by call."""
    blocks = [request.messages[0].blocks[0] for request in gateway.requests]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def talk(count: int) -> list[Message]:
    return [asked(at, f"q{at}") if at % 2 else replied(at, f"a{at}") for at in range(1, count + 1)]


# What is archived


@pytest.mark.parametrize(
    ("count", "keep_last", "archived"),
    [
        (40, None, 30),
        (6, None, 4),
        (40, 0, 40),
        (40, 1, 38),
        (40, 2, 38),
        (40, 3, 36),
        (40, 38, 2),
        (4, 2, 2),
    ],
)
def test_all_but_the_last_are_archived_and_no_question_is_parted_from_its_reply(
    count: int, keep_last: int | None, archived: int
):
    messages = talk(count)
    assert to_archive(messages, keep_last=keep_last, threshold=0) == messages[:archived]


@pytest.mark.parametrize(
    ("count", "keep_last", "threshold"),
    [(39, None, 40), (0, None, 0), (1, 1, 0), (40, 40, 0), (40, 99, 40)],
)
def test_too_few_messages_are_refused_with_the_numbers(count: int, keep_last: int | None, threshold: int):
    with pytest.raises(TooFewMessages) as refused:
        to_archive(talk(count), keep_last=keep_last, threshold=threshold)
    told = cast("dict[str, int]", refused.value.details)
    assert (told["messages"], told["threshold"]) == (count, threshold)
    assert str(count) in refused.value.message


# By the model


CALL = ToolCall(
    turn_id=TurnId("t"),
    tool_call_id="1",
    message_id=MessageId("m2"),
    tool_name="add",
    server="math",
    arguments={"a": 1},
    status=ToolCallStatus.OK,
    created_at=AT,
    result={"sum": 3},
)


def described(messages: Iterable[Message]) -> list[str]:
    return [text for it in messages if (text := describe(it, CardStyle()))]


def reply_of(*parts: Part) -> Message:
    """A reply that may have said nothing."""
    return replace(replied(2, "x", MessageStatus.CANCELLED), parts=parts)


async def test_model_gets_what_was_said_and_what_tools_gave_in_order():
    reply = reply_of(
        TextPart(text="I add.", iteration=1),
        ToolCallPart(call=CALL, iteration=1),
        ToolCallPart(call=replace(CALL, status=ToolCallStatus.ERROR, error="Too slow."), iteration=2),
        TextPart(text="三。", iteration=3),
    )
    told_of = message(3, MessageRole.SYSTEM, card(), MessageStatus.COMPLETED)
    overwritten = replace(replied(4, "never mind"), on_path=False)
    gateway = InMemoryGateway(says(" 用户问了加法。 "))
    messages = [asked(1, "一加二？"), reply, told_of, overwritten]
    assert await summary_of(gateway, "Before.", described(messages)) == "用户问了加法。"
    (text,) = told(gateway)
    assert text.startswith(
        "Summary so far:\n\nBefore.\n\nMessages:\n\nUser: 一加二？\n\n"
        'Assistant: I add.\n[Called add with {"a":1}; ok: {"sum":3}]\n'
        '[Called add with {"a":1}; error: Too slow.]\n三。\n\n'
    )
    assert "[简报 2026-01-07 02:00]" in text
    assert "never mind" not in text
    assert "language of the conversation" in gateway.requests[0].system


def test_reply_that_only_used_a_tool_is_summarised_too():
    text = describe(reply_of(ToolCallPart(call=CALL)), CardStyle())
    assert text == 'Assistant: [Called add with {"a":1}; ok: {"sum":3}]'
    assert describe(reply_of(ToolCallPart(call=CALL, superseded=True)), CardStyle()) is None
    assert describe(reply_of(), CardStyle()) is None


@pytest.mark.parametrize("result", ["x" * 9_000 + "end", msgspec.Raw(b'["' + b"x" * 9_000 + b'", "end"]')])
def test_long_values_are_shortened_to_their_beginning_and_end(result: object):
    call = replace(CALL, arguments={"text": "y" * 5_000}, result=result)
    text = describe(reply_of(ToolCallPart(call=call)), CardStyle())
    assert text is not None
    assert len(text) < MOST_ARGUMENT_CHARACTERS + MOST_RESULT_CHARACTERS + 100
    assert "xxx … xxx" in text
    assert "end" in text


async def test_long_history_is_summarised_part_by_part_each_on_the_one_before():
    gateway = InMemoryGateway(*(says(f"S{n}") for n in range(1, 100)), context_tokens=2000)
    messages = talk(600)
    summary = await summary_of(gateway, None, described(messages))
    count = len(gateway.requests)
    assert count > 2
    assert summary == f"S{count}"
    parts = told(gateway)
    assert parts[0].startswith("Messages:")
    for number, part in enumerate(parts[1:], 1):
        assert part.startswith(f"Summary so far:\n\nS{number}\n\n")
    lines = [
        line for part in parts for line in part.split("\n\n") if line.startswith(("User:", "Assistant:"))
    ]
    assert lines == [
        f"{'User' if at % 2 else 'Assistant'}: {it.content}" for at, it in enumerate(messages, 1)
    ]


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 30_000), min_size=1, max_size=12),
    st.sampled_from(["x", "字"]),
    st.integers(2000, 9000),
)
def test_no_call_is_larger_than_the_model_takes(sizes: Sequence[int], letter: str, context_tokens: int):
    gateway = InMemoryGateway(*(says("s" * 50_000) for _ in range(100)), context_tokens=context_tokens)
    messages = [asked(at, letter * size) for at, size in enumerate(sizes, 1)]
    summary = asyncio.run(summary_of(gateway, None, described(messages)))
    assert len(summary) <= MOST_SUMMARY_CHARACTERS
    for request in gateway.requests:
        assert estimate_request_tokens(request) < context_tokens


@pytest.mark.parametrize("said", ["", " \n\u200b"])
async def test_empty_summary_is_a_failure(said: str):
    with pytest.raises(GatewayError, match="empty summary"):
        await summary_of(InMemoryGateway(says(said)), None, described(talk(4)))


@pytest.mark.parametrize(
    "result", ["x" * 4000, {"rows": ["x" * 4000]}, msgspec.Raw(b'["' + b"x" * 4000 + b'"]')]
)
def test_calls_and_results_count_in_what_a_message_costs(result: object):
    said = TextPart(text="Done.", iteration=2)
    used = ToolCallPart(call=replace(CALL, result=result), iteration=1)
    without, with_result = (context_tokens(reply_of(*parts), CardStyle()) for parts in ([said], [used, said]))
    assert 1000 < with_result - without < 1100
    assert context_tokens(reply_of(), CardStyle()) == 0


# Without a model


def extract_of(earlier: str | None, messages: Iterable[Message], most: int = 3000) -> str:
    return extract(earlier, [line for it in messages for line in extract_lines(it)], most=most)


def test_extract_has_what_tools_returned():
    reply = reply_of(ToolCallPart(call=CALL, iteration=1), TextPart(text="Three. Sure.", iteration=2))
    assert extract_of(None, [reply]).splitlines()[1:] == [
        '- tool: [Called add with {"a":1}; ok: {"sum":3}]',
        "- assistant: Three.",
    ]


def test_extract_holds_first_sentences_and_says_what_it_is():
    messages = [
        asked(1, "Where is the contract? I lost it."),
        replied(2, "In the drawer.\nThe left one."),
        message(3, MessageRole.SYSTEM, card(title="Policy"), MessageStatus.COMPLETED),
        replied(4, "", MessageStatus.FAILED),
    ]
    assert extract_of(None, messages).splitlines() == [
        "(Extracts of earlier messages, made without a model.)",
        "- user: Where is the contract?",
        "- assistant: In the drawer.",
        "- briefing: Policy",
    ]
    assert extract_of(None, [asked(1, "合同在哪里？我找不到了。")]).splitlines() == [
        "（以下是较早消息的原文摘录，未经模型概括。）",
        "- user: 合同在哪里？",
    ]


def test_later_extract_builds_on_the_earlier_and_gives_up_the_oldest():
    first = extract_of(None, talk(4))
    second = extract_of(first, talk(8)[4:])
    assert second == extract_of(None, talk(8))
    small = extract_of(second, talk(400)[8:], most=300)
    assert len(small) <= 300
    assert small.splitlines()[1] == "…"
    assert small.endswith("- assistant: a400")
    assert len(extract_of(None, [asked(1, "word " * 500)])) < 300
