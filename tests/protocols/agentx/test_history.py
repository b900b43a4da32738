"""Stored messages as AgentX shows them."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.protocols.recorded import AT, BEGINNING, COMPLETED, CONTEXT, REPLY, TIMED_OUT, turn
from threadkeep.domain.briefing import BriefingCard, Priority
from threadkeep.domain.ids import BriefingId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import CardPart, Part, TextPart, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus, derived_id
from threadkeep.engine.fold import fold
from threadkeep.protocols.agentx.encode import AgentXTurn
from threadkeep.protocols.agentx.history import history

CALL = ToolCall(
    turn_id=CONTEXT.turn_id,
    tool_call_id="t1",
    message_id=REPLY.id,
    tool_name="search",
    server="docs",
    arguments={"query": "x"},
    status=ToolCallStatus.OK,
    created_at=AT,
    result="found",
    duration_ms=12,
    model_name="search",
)


def ended(*parts: Part, status: MessageStatus = MessageStatus.CANCELLED) -> Message:
    return replace(REPLY, parts=parts, status=status, completed_at=AT + 20)


def as_read(value: Any) -> Any:
    """A value as clients read it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def shown(message: Message) -> list[dict[str, Any]]:
    """A message as clients read it in the history."""
    return as_read(history(message))


@pytest.mark.parametrize("last", [COMPLETED, TIMED_OUT])
def test_history_shows_the_messages_that_the_events_told(last: Any):
    events = turn(*BEGINNING, last)
    agentx = AgentXTurn(CONTEXT)
    envelopes = [it for event in events for it in agentx.envelopes(event)]
    told = [as_read(it.data) for it in envelopes if it.category == "message"]
    in_history = {it["id"]: it for it in shown(fold(REPLY, events))}
    assert in_history.keys() == {it["id"] for it in told}
    for message in told:
        # A call's time is its part's in the history, and its event's while it runs.
        assert in_history[message["id"]] | {"timestamp": 0} == message | {"timestamp": 0}


def test_reply_of_calls_only_is_there_for_them_to_stand_under():
    reply, call, result = shown(ended(ToolCallPart(call=CALL)))
    assert (reply["id"], reply["content"]) == ("m2", [{"type": "text", "text": ""}])
    assert (call["parentId"], call["toolCall"]["input"]) == ("m2", {"query": "x"})
    assert result["toolResult"]["output"] == {"type": "text", "value": "found"}
    assert result["timestamp"] - call["timestamp"] == 12


def test_call_that_runs_has_no_result_yet():
    running = replace(CALL, status=ToolCallStatus.RUNNING, result=None, duration_ms=None)
    assert [it["subtype"] for it in shown(ended(ToolCallPart(call=running)))] == ["assistant", "tool-call"]


def test_call_from_elsewhere_has_an_id_that_no_other_turn_repeats():
    imported = replace(CALL, model_name="")
    _, call, result = shown(ended(ToolCallPart(call=imported)))
    assert call["toolCall"]["id"] == result["toolCallId"] == derived_id(CONTEXT.turn_id, "t1")


@pytest.mark.parametrize("status", [MessageStatus.CANCELLED, MessageStatus.PENDING])
def test_reply_that_says_nothing_is_not_shown(status: MessageStatus):
    assert shown(ended(status=status)) == []


def test_superseded_text_is_not_shown():
    (reply,) = shown(ended(TextPart(text="wrong", superseded=True), TextPart(text="right")))
    assert reply["content"] == [{"type": "text", "text": "right"}]


def test_briefing_is_shown_as_words_of_the_agent():
    card = BriefingCard(BriefingId("b1"), "Overdue", "Two reviews.", Priority.P1, AT)
    parts = (CardPart(card=card),)
    message = replace(REPLY, parts=parts, role=MessageRole.SYSTEM, status=MessageStatus.COMPLETED)
    (briefing,) = shown(message)
    assert (briefing["subtype"], briefing["content"]) == (
        "assistant",
        [{"type": "text", "text": "Overdue\nTwo reviews."}],
    )
