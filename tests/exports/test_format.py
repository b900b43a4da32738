"""A message as a line of an export, and back."""

from dataclasses import replace

import msgspec
import pytest

from tests.wire.test_messages import CALL, CARD, HIT, message
from threadkeep.domain.approval import ApprovalAction, CallApproval, Decision
from threadkeep.domain.errors import MessageContentRequired
from threadkeep.domain.ids import PayloadId, TurnId
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    QuestionPart,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
)
from threadkeep.domain.times import LATEST_MS
from threadkeep.exports.format import decode, encode

DECIDED = message(
    ToolCallPart(
        call=CALL,
        approval=CallApproval(
            request_id="r1",
            message="Call?",
            expires_at=9,
            decision=Decision(action=ApprovalAction.EDIT, at=5, arguments={"q": "y"}),
        ),
        iteration=1,
    ),
    QuestionPart(
        request_id="r2",
        message="Which?",
        at=3,
        expires_at=9,
        decision=Decision(action=ApprovalAction.ANSWER, at=6, content="A"),
        iteration=1,
    ),
    TextPart(text="So.", iteration=1),
)

RICH = replace(
    message(
        ThoughtPart(text="Hm.", started_at=1, duration_ms=2, title="search", iteration=1),
        TextPart(text="Old.", iteration=1, superseded=True),
        ToolCallPart(
            call=replace(
                CALL,
                refs={"result": PayloadId("p")},
                artifact_ids=(PayloadId("f"),),
                model_name="docs__search",
            ),
            iteration=1,
        ),
        RetrievalPart(query="q", hits=(HIT,), at=3, tool_call_id="c1", iteration=1),
        NoticePart(code="X", message="away", at=4, iteration=2),
        FilePart(
            file_id=PayloadId("f"), file_name="a.png", media_type="image/png", size=9, width=1, height=2
        ),
        TextPart(text="So.", iteration=2),
    ),
    usage=Usage(1, 2, estimated=True),
    token_count=2,
    model="scripted",
    error=Failure("X", "why", retryable=True),
)


@pytest.mark.parametrize(
    "kept",
    [RICH, DECIDED, message(TextPart(text="So.")), message(CardPart(card=CARD), role=MessageRole.SYSTEM)],
    ids=["rich", "decided", "plain", "card"],
)
def test_message_comes_back_as_it_was(kept: Message):
    assert decode(encode(kept)) == kept


def test_decisions_are_called_answers_in_files():
    called, question, _ = msgspec.json.decode(encode(DECIDED))["parts"]
    assert called["approval"]["answer"]["arguments"] == {"q": "y"}
    assert question["answer"]["content"] == "A"
    assert "decision" not in question | called["approval"]


def test_message_off_the_path_reads_overwritten_and_comes_back_off_it():
    failed = replace(RICH, status=MessageStatus.FAILED, on_path=False)
    line = encode(failed)
    assert msgspec.json.decode(line)["status"] == "OVERWRITTEN"
    assert decode(line, {TurnId("t"): MessageStatus.FAILED}) == failed
    completed = decode(line)
    assert isinstance(completed, Message)
    assert (completed.status, completed.shown_status) == ("COMPLETED", "OVERWRITTEN")


def test_question_off_the_path_does_not_take_its_turns_status():
    asked = replace(message(TextPart(text="Why?"), role=MessageRole.USER), on_path=False)
    assert decode(encode(asked), {TurnId("t"): MessageStatus.FAILED}) == asked


@pytest.mark.parametrize("part", [{"type": "odd"}, {"text": "no type"}, {"type": "text"}])
def test_part_that_cannot_be_read_is_refused(part: dict[str, str]):
    values = msgspec.json.decode(encode(RICH)) | {"parts": [part]}
    with pytest.raises(msgspec.ValidationError):
        decode(msgspec.json.encode(values))


def test_blank_message_is_refused():
    values = msgspec.json.decode(encode(message(TextPart(text="So.")))) | {"parts": []}
    with pytest.raises(MessageContentRequired):
        decode(msgspec.json.encode(values))


def test_times_that_nobody_can_write_come_in_as_the_nearest_and_what_tools_gave_stays():
    call = replace(CALL, created_at=2**53, arguments={"at": 2**53, "created_at": -1}, result={"at": 2**53})
    parts = (
        ThoughtPart(text="x", started_at=-5, iteration=1),
        ToolCallPart(call=call, iteration=1),
        TextPart(text="x", iteration=1),
    )
    line = encode(replace(message(*parts), created_at=2**53, completed_at=2**60))
    read = decode(line)
    assert isinstance(read, Message)
    assert (read.created_at, read.completed_at) == (LATEST_MS, LATEST_MS)
    thought, called, _ = read.parts
    assert isinstance(thought, ThoughtPart)
    assert isinstance(called, ToolCallPart)
    assert thought.started_at == 0
    assert called.call == replace(call, created_at=LATEST_MS)
