"""What clients see of a message: its parts in order, and the fields that are made of them."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.making import NOW
from threadkeep.domain.briefing import BriefingCard, Priority
from threadkeep.domain.ids import BriefingId, ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    Part,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.wire.messages import MessageView, message_view

AT = "2027-01-15T08:00:00.000Z"
CALL = ToolCall(
    turn_id=TurnId("t"),
    tool_call_id="c1",
    message_id=MessageId("m2"),
    tool_name="search",
    server="docs",
    arguments={"q": "lease"},
    status=ToolCallStatus.OK,
    created_at=NOW,
    result={"rows": 3},
    duration_ms=12,
)
CARD = BriefingCard(BriefingId("b"), "Policy", "It changed.", Priority.P1, NOW)
HIT = RetrievalHit("a.pdf", "Clause.", 0.5, chunk_id="k", document_id="d", page=3)


def message(*parts: Part, role: MessageRole = MessageRole.ASSISTANT) -> Message:
    return Message(
        id=MessageId("m2"),
        conversation_id=ConversationId("c"),
        seq=2,
        turn_id=TurnId("t"),
        role=role,
        parts=parts,
        status=MessageStatus.COMPLETED,
        created_at=NOW,
        completed_at=NOW,
        parent_id=MessageId("m1"),
    )


def shown(it: Message) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(message_view(it)))


def test_text_of_two_calls_does_not_run_together():
    seen = shown(
        message(TextPart(text="Numbers first.", iteration=1), TextPart(text="Now I check.", iteration=2))
    )
    assert seen["content"] == "Numbers first.\n\nNow I check."
    assert seen["parts"] == [
        {"type": "text", "text": "Numbers first.", "iteration": 1},
        {"type": "text", "text": "Now I check.", "iteration": 2},
    ]


def test_parts_keep_their_order_and_every_older_field_is_a_view_of_them():
    parts = (
        ThoughtPart(text="Hm.", started_at=NOW, duration_ms=5, iteration=1),
        TextPart(text="Let me see.", iteration=1),
        ToolCallPart(call=replace(CALL, artifact_ids=(PayloadId("f"),)), iteration=1),
        RetrievalPart(query="lease", hits=(HIT,), at=NOW, tool_call_id="c1", iteration=1),
        NoticePart(code="X", message="mail is away", at=NOW, iteration=2),
        TextPart(text="So [1].", iteration=2),
    )
    seen = shown(message(*parts))
    assert [part["type"] for part in seen["parts"]] == [
        "thought",
        "text",
        "tool_call",
        "retrieval",
        "notice",
        "text",
    ]
    assert seen["content"] == "Let me see.\n\nSo [1]."
    assert [step["kind"] for step in seen["thoughtProcess"]] == ["thought", "tool", "retrieval", "notice"]
    assert [call["toolCallId"] for call in seen["toolCalls"]] == ["c1"]
    assert [(it["index"], it["documentId"]) for it in seen["citations"]] == [(1, "d")]
    assert (seen["artifactIds"], seen["parentId"]) == (["f"], "m1")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            ThoughtPart(text="Hm.", started_at=NOW, duration_ms=5, iteration=1),
            {"type": "thought", "text": "Hm.", "startedAt": AT, "durationMs": 5, "iteration": 1},
        ),
        (
            ToolCallPart(call=CALL, iteration=1),
            {
                "type": "tool_call",
                "toolCallId": "c1",
                "toolName": "search",
                "server": "docs",
                "arguments": {"q": "lease"},
                "status": "ok",
                "result": {"rows": 3},
                "durationMs": 12,
                "iteration": 1,
            },
        ),
        (
            ToolCallPart(
                call=replace(
                    CALL,
                    status=ToolCallStatus.ERROR,
                    result=None,
                    error="No.",
                    chart_data=[1],
                    artifact_ids=(PayloadId("f"),),
                ),
                iteration=2,
            ),
            {
                "type": "tool_call",
                "toolCallId": "c1",
                "toolName": "search",
                "server": "docs",
                "arguments": {"q": "lease"},
                "status": "error",
                "result": None,
                "error": "No.",
                "chartData": [1],
                "artifactIds": ["f"],
                "durationMs": 12,
                "iteration": 2,
            },
        ),
        (
            RetrievalPart(query="lease", hits=(HIT,), at=NOW, tool_call_id="c1"),
            {
                "type": "retrieval",
                "query": "lease",
                "toolCallId": "c1",
                "iteration": 0,
                "hits": [
                    {
                        "source": "a.pdf",
                        "text": "Clause.",
                        "score": 0.5,
                        "chunkId": "k",
                        "documentId": "d",
                        "page": 3,
                    }
                ],
            },
        ),
        (
            FilePart(
                file_id=PayloadId("f"), file_name="a.png", media_type="image/png", size=9, width=2, height=3
            ),
            {
                "type": "file",
                "fileId": "f",
                "fileName": "a.png",
                "mediaType": "image/png",
                "size": 9,
                "width": 2,
                "height": 3,
                "iteration": 0,
            },
        ),
        (
            NoticePart(code="X", message="away", at=NOW, superseded=True),
            {"type": "notice", "code": "X", "message": "away", "iteration": 0, "superseded": True},
        ),
    ],
    ids=["thought", "tool_call", "failed tool_call", "retrieval", "file", "superseded notice"],
)
def test_each_kind_of_part_as_the_contract_writes_it(part: Part, expected: dict[str, Any]):
    seen = shown(message(part, TextPart(text="So.")))
    assert seen["parts"][0] == expected


def test_card_is_a_part_and_the_content():
    seen = shown(message(CardPart(card=CARD), role=MessageRole.SYSTEM))
    card: dict[str, Any] = {
        "briefingId": "b",
        "title": "Policy",
        "summary": "It changed.",
        "priority": "P1",
        "sentAt": AT,
        "data": None,
        "actions": [],
    }
    assert (seen["contentType"], seen["content"]) == ("briefing_card", card)
    assert seen["parts"] == [{"type": "card", **card, "iteration": 0}]


def test_message_off_the_path_reads_as_overwritten():
    seen = shown(message(TextPart(text="So.")).become(MessageStatus.OVERWRITTEN))
    assert seen["status"] == "OVERWRITTEN"


def test_superseded_parts_are_listed_and_counted_nowhere_else():
    old = (TextPart(text="Old.", superseded=True), ToolCallPart(call=CALL, superseded=True))
    seen = shown(message(*old, TextPart(text="New.")))
    assert [part.get("superseded") for part in seen["parts"]] == [True, True, None]
    assert (seen["content"], seen["toolCalls"], seen["thoughtProcess"]) == ("New.", [], [])


def test_client_reads_parts_as_they_were_sent():
    sent = message_view(message(ToolCallPart(call=CALL, iteration=1), TextPart(text="So.", iteration=2)))
    assert msgspec.json.decode(msgspec.json.encode(sent), type=MessageView) == replace_tuples(sent)


def replace_tuples(view: MessageView) -> MessageView:
    """A client gets lists where the server has tuples."""
    return msgspec.structs.replace(view, artifact_ids=list(view.artifact_ids))


@pytest.mark.parametrize("at", [-1, 2**53, 2**62])
def test_time_that_nobody_can_write_does_not_keep_a_message_from_being_read(at: int):
    seen = shown(replace(message(TextPart(text="So.")), created_at=at))
    assert seen["createdAt"] in {"1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"}
