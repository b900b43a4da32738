"""What a model is sent: whatever the history, a request that every provider takes."""

from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateways.provider_rules import check_anthropic_request, check_openai_request
from tests.scripted_model import Say, ScriptedModel, Think
from tests.talking import Talk
from threadkeep.domain.briefing import Briefing, BriefingCard, Priority
from threadkeep.domain.ids import BriefingId, ConversationId, MessageId, TurnId, UserId, new_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import CardPart, ThoughtPart, text_parts
from threadkeep.domain.text import BLANK_CHARACTERS, is_blank
from threadkeep.engine.context import build_request, rebuild_request, render_card, to_context
from threadkeep.engine.prompt import Component
from threadkeep.engine.token_estimates import estimate_tokens
from threadkeep.gateways.anthropic import anthropic_body
from threadkeep.gateways.openai import Habits, OpenAIGateway, openai_body
from threadkeep.gateways.wire import encode
from threadkeep.ports.gateway import ModelRequest, TextBlock

SECRET_THOUGHT = "what-the-model-only-thought"
SHANGHAI = ZoneInfo("Asia/Shanghai")
AT = 1_767_751_200_000  # 2026-01-07 02:00 UTC


def message(seq: int, role: MessageRole, content: str | BriefingCard, status: MessageStatus) -> Message:
    parts = text_parts(content) if isinstance(content, str) else (CardPart(card=content),)
    if role is MessageRole.ASSISTANT:
        parts = (ThoughtPart(text=SECRET_THOUGHT, started_at=AT, duration_ms=1), *parts)
    return Message(MessageId(f"m{seq}"), ConversationId("c"), seq, TurnId("t"), role, parts, status, AT)


def card(title: str = "政策更新", summary: str = "新规发布。", sent_at: int = AT) -> BriefingCard:
    return BriefingCard(BriefingId("b"), title, summary, Priority.P1, sent_at)


def asked(seq: int, content: str) -> Message:
    return message(seq, MessageRole.USER, content, MessageStatus.COMPLETED)


def answered(seq: int, content: str, status: MessageStatus = MessageStatus.COMPLETED) -> Message:
    return message(seq, MessageRole.ASSISTANT, content, status)


blank = st.text(st.sampled_from(BLANK_CHARACTERS), max_size=3)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
spoken = words.filter(lambda text: not is_blank(text))
unfinished = st.sampled_from(
    sorted(set(MessageStatus) - {MessageStatus.COMPLETED, MessageStatus.OVERWRITTEN})
)


@dataclass(frozen=True)
class History:
    """The messages of a conversation, the question among them that is to be answered now."""

    messages: list[Message]
    question: Message


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Anything that can have happened: any states, empty replies, cards anywhere, cut off at any point."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, 25))):
        seq = len(messages) + 1
        match draw(st.sampled_from(["asked", "answered", "unfinished", "card"])):
            case "asked":
                messages.append(asked(seq, draw(spoken)))
            case "answered":
                messages.append(answered(seq, draw(spoken)))
            case "unfinished":
                messages.append(answered(seq, draw(st.one_of(blank, words)), draw(unfinished)))
            case _:
                told = card(draw(spoken), draw(spoken), draw(st.integers(0, 2**41)))
                messages.append(message(seq, MessageRole.SYSTEM, told, MessageStatus.COMPLETED))
    messages = messages[draw(st.integers(0, len(messages))) :]  # archived, or beyond the window
    question = asked(100, draw(spoken))
    reply = answered(101, "", MessageStatus.PENDING)
    overwritten = replace(answered(101, draw(words), MessageStatus.FAILED), on_path=False)
    later = message(102, MessageRole.SYSTEM, card(draw(spoken), draw(spoken)), MessageStatus.COMPLETED)
    rest = draw(st.sampled_from([[reply], [overwritten, reply], [overwritten, later, reply], []]))
    return History([*messages, question, *rest], question)


components = st.lists(st.builds(Component, st.sampled_from("ab"), st.one_of(blank, words)), max_size=3)


def bodies(request: ModelRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    return anthropic_body(request, "m"), openai_body(request, "m", Habits())


def said(request: ModelRequest) -> list[str]:
    texts = [[block.text for block in it.blocks if isinstance(block, TextBlock)] for it in request.messages]
    assert all(len(it) == 1 for it in texts)
    return [it[0] for it in texts]


def rendered(message: Message, thoughts: bool = False) -> str:
    if isinstance(message.content, BriefingCard):
        return render_card(message.content, UTC)
    thought = f"<thinking>\n{SECRET_THOUGHT}\n</thinking>\n\n"
    return thought * (thoughts and message.role is MessageRole.ASSISTANT) + message.content


@settings(deadline=None, max_examples=300)
@given(
    histories(),
    components,
    st.integers(1, 50),
    st.one_of(st.integers(1, 300), st.integers(1024, 1400), st.just(200_000)),
    st.booleans(),
    st.one_of(st.none(), st.floats(0, 2)),
    st.one_of(st.none(), st.integers(1, 5000)),
)
def test_every_history_makes_a_request_that_every_provider_takes(
    history: History,
    parts: list[Component],
    context_messages: int,
    context_tokens: int,
    thoughts: bool,
    temperature: float | None,
    max_tokens: int | None,
):
    shown = history.messages[: history.messages.index(history.question) + 1][-context_messages:]
    window = [*shown, *history.messages[history.messages.index(history.question) + 1 :]]
    request, receipt = build_request(
        window,
        parts,
        model=None,
        context_tokens=context_tokens,
        zone=UTC,
        question_id=history.question.id,
        thoughts=thoughts,
        temperature=temperature,
        max_tokens=max_tokens,
    )
    for_anthropic, for_openai = bodies(request)
    assert not check_anthropic_request(for_anthropic)
    assert not check_openai_request(for_openai)
    assert thoughts or SECRET_THOUGHT.encode() not in encode([for_anthropic, for_openai])

    # In their order, the oldest left out first, the question always there.
    kept = [it for it in window if it.id in receipt.message_ids]
    assert [it.id for it in kept] == [*receipt.message_ids]
    possible = [it for it in window if it.on_path and not is_blank(rendered(it))]
    others = [it for it in possible if it != history.question]
    assert history.question in kept
    assert [it for it in kept if it != history.question] == others[len(possible) - len(kept) :]
    assert receipt.dropped_messages == len(possible) - len(kept)
    assert rendered(history.question) in said(request)[-1]
    first_asked = next(at for at, it in enumerate(kept) if it.role is not MessageRole.ASSISTANT)
    assert "\n\n".join(said(request)) == "\n\n".join(rendered(it, thoughts) for it in kept[first_asked:])

    # Under the window, unless the system prompt and the question alone are too much.
    assert receipt.token_estimate <= context_tokens or len(kept) == 1

    texts = {part.sha256: part.text for part in parts}
    again = rebuild_request(receipt, texts, {it.id: it for it in window}, UTC)
    assert again == request
    assert [encode(body) for body in bodies(again)] == [encode(for_anthropic), encode(for_openai)]


def test_oldest_are_dropped_where_the_window_is_small():
    history = [asked(1, "a" * 400), answered(2, "b" * 400), asked(3, "c" * 400), answered(4, "d" * 400)]
    question = asked(5, "e" * 400)
    room = 1024 + 3 * estimate_tokens("a" * 400) + 50
    request, receipt = build_request([*history, question], [], model=None, context_tokens=room, zone=UTC)
    assert said(request) == ["c" * 400, "d" * 400, "e" * 400]
    assert (receipt.dropped_messages, receipt.token_estimate <= room) == (2, True)


def test_question_larger_than_the_window_is_still_asked():
    question = asked(3, "e" * 9000)
    request, receipt = build_request(
        [asked(1, "a"), answered(2, "b"), question], [], model=None, context_tokens=100, zone=UTC
    )
    assert said(request) == ["e" * 9000]
    assert receipt.dropped_messages == 2


def test_components_are_the_system_prompt_and_blank_ones_are_left_out():
    parts = [
        Component("systemPrompt", "Be brief."),
        Component("role", " \u200b"),
        Component("summary", "So far."),
    ]
    request, receipt = build_request([asked(1, "?")], parts, model="m", context_tokens=9000, zone=UTC)
    assert request.system == "Be brief.\n\nSo far."
    assert [(it.name, it.length) for it in receipt.components] == [("systemPrompt", 9), ("summary", 7)]


@pytest.mark.parametrize(("zone", "hour"), [(UTC, "02:00"), (SHANGHAI, "10:00")])
def test_card_is_rendered_exactly(zone: Any, hour: str):
    expected = f"[简报 2026-01-07 {hour}]\n标题：政策更新\n摘要：新规发布。\n优先级：P1"
    assert render_card(card(), zone) == expected


@pytest.mark.parametrize(("length", "shown"), [(500, "长" * 500), (501, "长" * 500 + "...")])
def test_long_summary_of_a_card_is_cut(length: int, shown: str):
    assert f"\n摘要：{shown}\n优先级" in render_card(card(summary="长" * length), UTC)


def test_cards_are_put_into_the_users_mouth_and_thoughts_stay_out():
    told = message(2, MessageRole.SYSTEM, card(), MessageStatus.COMPLETED)
    history = [asked(1, "A"), told, answered(3, "B"), asked(4, "C")]
    request, _ = build_request(history, [], model=None, context_tokens=9000, zone=SHANGHAI)
    assert [(it.role, text) for it, text in zip(request.messages, said(request), strict=True)] == [
        ("user", f"A\n\n{render_card(card(), SHANGHAI)}"),
        ("assistant", "B"),
        ("user", "C"),
    ]
    entries = to_context(history, summary="Before.", zone=SHANGHAI)
    assert [it.role for it in entries] == ["user", "user", "user", "assistant", "user"]
    assert SECRET_THOUGHT not in str(entries)


def test_what_was_said_before_a_stop_or_a_failure_is_context():
    history = [
        asked(1, "A"),
        answered(2, "half", MessageStatus.CANCELLED),
        asked(3, "B"),
        answered(4, "", MessageStatus.FAILED),
        asked(5, "C"),
        replace(answered(6, "old"), on_path=False),
        answered(7, "new"),
        asked(8, "D"),
    ]
    request, _ = build_request(history, [], model=None, context_tokens=9000, zone=UTC)
    assert said(request) == ["A", "half", "B\n\nC", "new", "D"]


def test_thoughts_go_with_the_replies_where_the_agent_wants_them():
    history = [asked(1, "A"), answered(2, "B"), answered(3, "", MessageStatus.FAILED), asked(4, "C")]
    request, receipt = build_request(history, [], model=None, context_tokens=9000, zone=UTC, thoughts=True)
    thoughtful = f"<thinking>\n{SECRET_THOUGHT}\n</thinking>\n\nB"
    assert said(request) == ["A", thoughtful, "C"]
    assert (receipt.thoughts, receipt.message_ids) == (True, ("m1", "m2", "m4"))
    entries = to_context(history, summary=None, zone=UTC, thoughts=True)
    assert [it.content for it in entries] == ["A", thoughtful, "C"]


async def test_model_gets_thoughts_where_the_agent_wants_them(talk: Talk, model: ScriptedModel):
    model.script([Think("Hm. "), Think("Yes."), Say("Because.")], [Say("Again.")])
    conversation = await talk.titled_conversation(settings={"contextThoughts": True})
    await talk.ask(conversation, "Why?")
    await talk.ask(conversation, "Really?")
    expected = ["Why?", "<thinking>\nHm. Yes.\n</thinking>\n\nBecause.", "Really?"]
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]] == expected
    context = await talk.client.get(f"/api/conversations/{conversation}/context")
    assert [it["content"] for it in context.json()["messages"]] == [*expected, "Again."]
    assert not model.refused


async def test_regenerated_question_is_asked_although_a_card_came_after_it(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(OpenAIGateway, "context_tokens", property(lambda _: 1024 + 40), raising=False)
    conversation_id = await talk.titled_conversation(settings={"contextMessages": 1})
    await talk.ask(conversation_id, "Why?")
    conversation = await talk.store.conversations.get(UserId("local"), ConversationId(conversation_id))
    assert conversation
    briefing = Briefing(
        BriefingId(new_uuid()), conversation.agent_id, conversation.user_id, "Title", "long " * 99,
        Priority.P1, None, (), AT,
    )  # fmt: skip
    await talk.store.messages.add_card(*conversation.add_card(briefing, AT))
    await talk.client.post(f"/api/conversations/{conversation_id}/regenerate")
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]] == ["Why?"]


async def test_model_gets_the_latest_twenty_of_fifty(talk: Talk, model: ScriptedModel):
    conversation = await talk.titled_conversation()
    for number in range(25):
        await talk.ask(conversation, f"question {number}")
    await talk.ask(conversation, "the last one")
    sent = [it["content"] for it in model.requests[-1].body["messages"][1:]]
    # Twenty, of which the first is an answer, with which no request begins.
    assert sent == [
        *(text for number in range(16, 25) for text in (f"question {number}", "OK.")),
        "the last one",
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_question_is_asked_however_little_context_an_agent_wants(
    talk: Talk, model: ScriptedModel, count: int
):
    conversation = await talk.titled_conversation(settings={"contextMessages": count})
    for number in range(3):
        assert (await talk.ask(conversation, f"question {number}"))["status"] == "COMPLETED"
    sent = [it["content"] for it in model.requests[-1].body["messages"][1:]]
    assert sent == ["question 1", "OK.", "question 2"][-1 if count < 3 else 0 :]
    await talk.client.post(f"/api/conversations/{conversation}/regenerate")
    assert [it["content"] for it in model.requests[-1].body["messages"][1:]][-1] == "question 2"
    assert not model.refused
