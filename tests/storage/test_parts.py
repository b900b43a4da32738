"""A message's parts as columns and back: nothing is changed, and no text is kept twice."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.making import NOW, said
from threadkeep.domain.briefing import BriefingCard, Priority
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, BriefingId, MessageId, PayloadId, TurnId, UserId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    Part,
    Parts,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    text_parts,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.storage.parts import calls_in, to_columns, to_parts

REPLY = Conversation.start(UserId("alice"), AgentId("a"), NOW).begin_turn("?", NOW).assistant_message
CARD = BriefingCard(BriefingId("b"), "t", "s", Priority.P1, NOW)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
common: dict[str, Any] = {"iteration": st.integers(0, 3), "superseded": st.booleans()}
hits = st.builds(
    RetrievalHit, texts, texts, st.floats(0, 1), page=st.none() | st.integers(1, 9), url=st.none() | texts
)


def call(id_: str) -> ToolCall:
    return ToolCall(TurnId("t"), id_, MessageId("m"), "add", "math", {}, ToolCallStatus.OK, NOW)


parts_of_replies = st.lists(
    st.one_of(
        st.builds(TextPart, text=texts, **common),
        st.builds(
            ThoughtPart,
            text=texts,
            started_at=st.integers(0),
            duration_ms=st.integers(0),
            title=st.none() | texts,
            **common,
        ),
        st.builds(ToolCallPart, call=st.just(call("")), **common),
        st.builds(
            RetrievalPart,
            query=texts,
            hits=st.lists(hits, max_size=2).map(tuple),
            at=st.integers(0),
            tool_call_id=st.none() | texts,
            **common,
        ),
        st.builds(
            StepPart,
            step_id=texts,
            name=texts,
            status=st.sampled_from(["running", "ok", "error", "cancelled", "unknown"]),
            at=st.integers(0),
            title=st.none() | texts,
            duration_ms=st.none() | st.integers(0),
            parent_id=st.none() | texts,
            agent=st.none() | texts,
            **common,
        ),
        st.builds(NoticePart, code=texts, message=texts, at=st.integers(0), **common),
        st.builds(
            FilePart,
            file_id=texts.map(PayloadId),
            file_name=texts,
            media_type=texts,
            size=st.integers(0),
            width=st.none() | st.integers(1),
            **common,
        ),
    ),
    max_size=8,
)


def numbered(parts: list[Part]) -> Parts:
    """Each tool call with an id of its own."""
    return tuple(
        replace(part, call=call(f"call_{number}")) if isinstance(part, ToolCallPart) else part
        for number, part in enumerate(parts)
    )


def back(message: Message) -> Parts:
    columns = to_columns(message)
    kept = columns["content_type"], columns["content"], columns["parts"]
    return to_parts(message.role, *kept, calls_in(message.parts))


@given(parts_of_replies.map(numbered))
def test_parts_come_back_as_they_were_kept(parts: Parts):
    message = replace(REPLY, parts=parts, status=MessageStatus.FAILED)
    assert back(message) == parts
    assert to_columns(message)["content"] == message.text


@pytest.mark.parametrize(
    ("role", "parts"),
    [
        (MessageRole.USER, text_parts("Why?")),
        (MessageRole.ASSISTANT, said("Because.")),
        (MessageRole.ASSISTANT, ()),
        (MessageRole.SYSTEM, (CardPart(card=CARD),)),
    ],
)
def test_message_that_its_content_says_all_of_has_no_parts_in_its_row(role: MessageRole, parts: Parts):
    message = replace(
        REPLY, role=role, parts=parts, status=MessageStatus.FAILED if not parts else MessageStatus.COMPLETED
    )
    assert to_columns(message)["parts"] is None
    assert back(message) == parts


def test_neither_text_nor_tool_calls_are_kept_twice():
    parts = (
        TextPart(text="First 你好.", iteration=1),
        ToolCallPart(call=call("c"), iteration=1),
        TextPart(text="Then 🌱.", iteration=2),
    )
    columns = to_columns(replace(REPLY, parts=parts, status=MessageStatus.COMPLETED))
    assert columns["content"] == "First 你好.\n\nThen 🌱."
    assert msgspec.json.decode(columns["parts"]) == [
        {"type": "text", "length": 9, "iteration": 1},
        {"type": "tool_call", "id": "c", "iteration": 1},
        {"type": "text", "begin": 11, "length": 7, "iteration": 2},
    ]
    assert (columns["tool_call_count"], columns["file_count"]) == (1, 0)


def test_tool_call_whose_row_has_gone_is_left_out():
    parts = (*said("Look."), ToolCallPart(call=call("c"), iteration=1))
    columns = to_columns(replace(REPLY, parts=parts, status=MessageStatus.COMPLETED))
    assert to_parts(REPLY.role, "text", columns["content"], columns["parts"], ()) == said("Look.")


def test_card_among_other_parts_is_refused():
    parts = (*said("Look."), CardPart(card=CARD))
    with pytest.raises(StorageConflict):
        to_columns(replace(REPLY, parts=parts, status=MessageStatus.COMPLETED))
