"""A turn as the Responses API streams it, read with OpenAI's own package."""

from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.protocols.recorded import (
    AT,
    BEGINNING,
    CANCELLED,
    COMPLETED,
    CONTEXT,
    RECORDED,
    TIMED_OUT,
    patient,
    replies,
    turn,
)
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    IterationRestart,
    IterationStart,
    Retrieval,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Usage
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.handling.stream import StreamEnd
from threadkeep.protocols.openai.encode import NOTHING_SEEN, ResponseEncoder, ResponseHead, ResponseStream
from threadkeep.sse import EventReader

EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
START = TurnStart("c1", "m1", "m2", "scripted")
REQUEST = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def head(part: int = 1) -> ResponseHead:
    """What is known before the first event."""
    return ResponseHead(
        turn_id=CONTEXT.turn_id,
        part=part,
        created_at=AT,
        model="assistant",
        metadata={"topic": "contracts"},
    )


def stream(
    events: list[TurnEvent],
    part: int = 1,
    after: int = NOTHING_SEEN,
    end: StreamEnd = StreamEnd.OVER,
) -> bytes:
    """All that a reader gets of one response."""
    encoder = ResponseEncoder(head(part), after)
    return b"".join(map(encoder.encode, events)) + encoder.end(end)


def parsed(raw: bytes) -> list[ResponseStreamEvent]:
    """The events as OpenAI's package types them; the SSE event has the type's name."""
    read = EventReader().feed(raw)
    events = [EVENTS.validate_json(it.data) for it in read]
    assert [it.event.decode() for it in read] == [it.type for it in events]
    return events


def last_response(events: list[ResponseStreamEvent]) -> OpenAIResponse:
    """The response as it ended."""
    response = getattr(events[-1], "response", None)
    assert isinstance(response, OpenAIResponse)
    return response


def accumulated(events: list[ResponseStreamEvent]) -> OpenAIResponse:
    """What the package's stream helper makes of the events."""
    state = ResponseStreamState[Any](input_tools=omit, text_format=omit)
    for event in events:
        state.handle_event(event)
    response = state._completed_response  # pyright: ignore[reportPrivateUsage]
    assert response is not None
    return cast("OpenAIResponse", response)


def types(response: OpenAIResponse) -> list[str]:
    return [it.type for it in response.output]


def retrieved(events: list[TurnEvent], part: int = 1) -> dict[str, Any]:
    """The response as it is read later."""
    told = ResponseStream(head(part))
    for event in events:
        list(told.events(event))
    assert told.response is not None
    return OpenAIResponse.model_validate_json(msgspec.json.encode(told.response)).to_dict()


def asks(call_id: str, request_id: str) -> list[EventBody]:
    """A call that waits for its user."""
    return [
        ToolCalled(call_id, "send", "mail", {"to": "li@example.org"}, asks=True),
        ApprovalRequest(request_id, ApprovalKind.TOOL, "May I?", AT, tool_call_id=call_id),
    ]


def test_recorded_turn_has_its_items_in_order():
    events = parsed(stream(RECORDED))
    assert events[0].type == "response.created"
    response = last_response(events)
    assert types(response) == ["reasoning", "message", "mcp_call", "file_search_call", "message"]
    assert response.status == "completed"
    assert response.output_text == 'Looking …\n"now"\r\n你好 👋'
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (40, 6)
    call = response.output[2]
    assert call.type == "mcp_call"
    assert (call.server_label, call.name, call.status) == ("docs", "search", "completed")
    assert (call.arguments, call.output) == ('{"query":"合同"}', '{"found":1}')


def test_stream_helper_builds_the_response_that_the_end_has():
    events = parsed(stream(RECORDED))
    assert accumulated(events).output_text == last_response(events).output_text


@patient
@given(replies)
def test_every_turn_is_numbered_without_gaps_and_each_item_opened_and_closed(events: list[TurnEvent]):
    told = parsed(stream([*events, *_numbered(events, COMPLETED)]))
    assert [it.sequence_number for it in told] == list(range(len(told)))
    added = [it.output_index for it in told if it.type == "response.output_item.added"]
    done = [it.output_index for it in told if it.type == "response.output_item.done"]
    assert added == list(range(len(added)))
    assert sorted(done) == added
    response = last_response(told)
    assert len({it.id for it in response.output}) == len(response.output) == len(added)
    assert accumulated(told).output_text == response.output_text


@patient
@given(replies)
def test_rest_follows_every_number(events: list[TurnEvent]):
    events = [*events, *_numbered(events, COMPLETED)]
    frames = stream(events).split(b"\n\n")[:-1]
    for after in range(-1, len(frames) + 1):
        assert stream(events, after=after).split(b"\n\n")[:-1] == frames[after + 1 :]


@patient
@given(replies)
def test_rest_of_each_of_a_turns_responses_follows_every_number(events: list[TurnEvent]):
    said = [it.body for it in events if not isinstance(it.body, TurnStart)]
    decided = [ApprovalResponse(REQUEST, ApprovalAction.ALLOW), ToolResultStored("t1", "send", "ok", "sent")]
    events = turn(START, *said, *asks("t1", REQUEST), *decided, *said, COMPLETED)
    for part in (1, 2):
        frames = stream(events, part).split(b"\n\n")[:-1]
        assert frames
        for after in range(-1, len(frames) + 1):
            assert stream(events, part, after).split(b"\n\n")[:-1] == frames[after + 1 :]


@patient
@given(replies, st.sampled_from([COMPLETED, CANCELLED, TIMED_OUT]))
def test_response_read_later_is_the_one_that_ended_the_stream(events: list[TurnEvent], end: EventBody):
    events = [*events, *_numbered(events, end)]
    assert retrieved(events) == last_response(parsed(stream(events))).to_dict()


def _numbered(before: list[TurnEvent], body: EventBody) -> list[TurnEvent]:
    return [TurnEvent(CONTEXT.turn_id, len(before) + 1, AT, body)]


@pytest.mark.parametrize(
    ("end", "event", "status"),
    [
        (COMPLETED, "response.completed", "completed"),
        (CANCELLED, "response.incomplete", "cancelled"),
        (TIMED_OUT, "response.failed", "failed"),
        (Done("COMPLETED", "m2", Usage(1, 1), "max_tokens"), "response.incomplete", "incomplete"),
    ],
)
def test_end_of_a_turn(end: EventBody, event: str, status: str):
    events = parsed(stream(turn(*BEGINNING, end)))
    response = last_response(events)
    assert (events[-1].type, response.status) == (event, status)
    assert (response.error is not None) == (status == "failed")
    assert (response.incomplete_details is not None) == (status == "incomplete")


def test_call_that_never_returned_is_incomplete():
    response = last_response(parsed(stream(turn(START, ToolCalled("t1", "add", "", {}), CANCELLED))))
    (call,) = response.output
    assert call.type == "mcp_call"
    assert (call.status, call.server_label) == ("incomplete", "threadkeep")


def test_approval_ends_one_response_and_the_decision_begins_the_next():
    asking = [START, IterationStart(1), Text("Sending …"), UsageReported(5, 1), *asks("t1", REQUEST)]
    decided = [
        ApprovalResponse(REQUEST, ApprovalAction.ALLOW),
        ToolResultStored("t1", "send", "ok", "sent"),
        IterationStart(2),
        Text("Sent."),
        UsageReported(7, 2),
        COMPLETED,
    ]
    waiting = parsed(stream(turn(*asking), end=StreamEnd.PAUSED))
    first = last_response(waiting)
    assert waiting[-1].type == "response.completed"
    assert types(first) == ["message", "mcp_approval_request"]
    assert first.usage is not None and first.usage.input_tokens == 5
    # What was streamed while it waited is what the whole turn tells of it.
    whole = turn(*asking, *decided)
    assert stream(whole) == stream(turn(*asking), end=StreamEnd.PAUSED)
    second = last_response(parsed(stream(whole, part=2)))
    assert types(second) == ["mcp_call", "message"]
    assert second.id == f"{first.id}_2"
    assert second.usage is not None and second.usage.input_tokens == 7
    asked, call = first.output[1], second.output[0]
    assert asked.type == "mcp_approval_request" and call.type == "mcp_call"
    assert call.approval_request_id == asked.id
    assert call.output == "sent"
    assert parsed(stream(whole, part=2))[0].sequence_number == 0
    assert stream(whole, part=3) == b""


def test_answers_to_one_response_belong_together():
    events = turn(
        START,
        *asks("t1", REQUEST),
        *asks("t2", OTHER),
        ApprovalResponse(REQUEST, ApprovalAction.ALLOW),
        ToolResultStored("t1", "send", "ok", "sent"),
        ApprovalResponse(OTHER, ApprovalAction.DENY),
        ToolResultStored("t2", "send", "denied", error="The user denied this call."),
        Text("One of two."),
        COMPLETED,
    )
    assert types(last_response(parsed(stream(events)))) == ["mcp_approval_request"] * 2
    second = last_response(parsed(stream(events, part=2)))
    assert types(second) == ["mcp_call", "mcp_call", "message"]
    denied = second.output[1]
    assert denied.type == "mcp_call"
    assert denied.status == "failed"
    assert denied.error is not None and denied.error.type == "mcp_tool_execution_error"
    assert denied.error.content == [{"type": "text", "text": "The user denied this call."}]


def test_function_of_the_client_ends_the_response():
    events = turn(
        START,
        ToolCalled("call_1", "locate", CLIENT, {"near": "me"}),
        ApprovalRequest(REQUEST, ApprovalKind.CLIENT_TOOL, "", AT, tool_call_id="call_1"),
        ApprovalResponse(REQUEST, ApprovalAction.RESULT, content="here"),
        ToolResultStored("call_1", "locate", "ok", "here"),
        Text("You are here."),
        COMPLETED,
    )
    (function,) = accumulated(parsed(stream(events))).output
    assert function.type == "function_call"
    assert (function.call_id, function.name, function.arguments) == ("call_1", "locate", '{"near":"me"}')
    assert types(last_response(parsed(stream(events, part=2)))) == ["message"]


def test_function_that_the_user_must_allow_is_called_once_they_have():
    events = turn(
        START,
        ToolCalled("call_1", "locate", CLIENT, {}, asks=True),
        ApprovalRequest(REQUEST, ApprovalKind.TOOL, "May I?", AT, tool_call_id="call_1"),
        ApprovalResponse(REQUEST, ApprovalAction.ALLOW),
        ApprovalRequest(OTHER, ApprovalKind.CLIENT_TOOL, "", AT, tool_call_id="call_1"),
        ApprovalResponse(OTHER, ApprovalAction.RESULT, content="here"),
        ToolResultStored("call_1", "locate", "ok", "here"),
        Text("You are here."),
        COMPLETED,
    )
    told = [types(last_response(parsed(stream(events, part=part)))) for part in (1, 2, 3)]
    assert told == [["mcp_approval_request"], ["function_call"], ["message"]]


def test_question_is_a_message():
    asked = ApprovalRequest(REQUEST, ApprovalKind.QUESTION, "Which of them?", AT)
    response = last_response(parsed(stream(turn(START, asked), end=StreamEnd.PAUSED)))
    assert response.output_text == "Which of them?"


def test_repeated_model_call_counts_once():
    events = turn(
        START,
        IterationStart(1),
        Text("Half an ans"),
        IterationRestart(1, 2),
        Text("A whole answer."),
        COMPLETED,
    )
    response = last_response(parsed(stream(events)))
    assert response.output_text == "A whole answer."
    assert [getattr(it, "status", None) for it in response.output] == ["incomplete", "completed"]
    assert [it.to_dict()["content"] != [] for it in response.output] == [True, True]


def test_citations_point_to_what_was_found():
    hits = (
        RetrievalHit("a.pdf", "…", 0.5, document_id="d1", file_name="a.pdf"),
        RetrievalHit("A page", "…", 0.4, url="https://example.org/a"),
    )
    events = turn(START, Retrieval("terms", hits), Text("As [1] and [2] say, not [3]."), COMPLETED)
    told = parsed(stream(events))
    message = last_response(told).output[1]
    assert message.type == "message"
    (text,) = message.content
    assert text.type == "output_text"
    assert [it.type for it in text.annotations] == ["file_citation", "url_citation"]
    assert [it.type for it in told].count("response.output_text.annotation.added") == 2
