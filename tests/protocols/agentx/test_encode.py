"""The `agentx` dialect."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.protocols.recorded import (
    AT,
    BEGINNING,
    CANCELLED,
    CONTEXT,
    RECORDED,
    REPLY,
    TIMED_OUT,
    patient,
    replies,
    told,
    turn,
    turns,
)
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationStart,
    Text,
    ToolResultStored,
    TurnEvent,
    TurnStart,
)
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.message import Usage
from threadkeep.engine.fold import fold
from threadkeep.protocols.agentx.cursor import Cursor, parse_cursor
from threadkeep.protocols.agentx.encode import AGENTX, AgentXTurn, wrap
from threadkeep.protocols.agentx.frames import Envelope, SessionContext, TextDelta, event_envelope
from threadkeep.protocols.dialect import START

TEXT = 'Looking …\n"now"\r\n\n\n你好 👋'
ENDED = AT + 14


def said(*bodies: EventBody) -> list[tuple[str, Any]]:
    """Type and data of all envelopes of a turn."""
    agentx = AgentXTurn(CONTEXT)
    return [(it.type, data_of(it)) for event in turn(*bodies) for it in agentx.envelopes(event)]


def data_of(envelope: Envelope) -> Any:
    """The data as a client reads it."""
    return json.loads(envelope.json())["data"]


def the_end(status: str, stop_reason: str) -> list[tuple[str, Any]]:
    message = {
        "id": "m2",
        "role": "assistant",
        "subtype": "assistant",
        "content": [{"type": "text", "text": TEXT}],
        "timestamp": ENDED,
    }
    return [
        ("message_stop", {"stopReason": stop_reason}),
        ("message_complete", {"messageId": "m2", "content": TEXT, "status": status}),
        ("assistant_message", message),
    ]


def result_message(output: dict[str, Any], at: int) -> dict[str, Any]:
    return {
        "id": "t1:result",
        "role": "tool",
        "subtype": "tool-result",
        "toolCallId": "t1",
        "toolResult": {"type": "tool-result", "id": "t1", "name": "search", "output": output},
        "timestamp": at,
    }


BEGUN: list[tuple[str, Any]] = [
    ("conversation_start", {"messageId": "m2"}),
    ("message_start", {"messageId": "m2", "model": "scripted"}),
    ("text_delta", {"text": 'Looking …\n"now"\r\n'}),
    ("conversation_responding", {}),
    ("message_delta", {"usage": {"inputTokens": 10, "outputTokens": 4}}),
    ("tool_use_start", {"toolCallId": "t1", "toolName": "search"}),
    ("input_json_delta", {"partialJson": '{"query":"合同"}'}),
    ("tool_use_stop", {"toolCallId": "t1", "toolName": "search", "input": {"query": "合同"}}),
    ("tool_planned", {"toolId": "t1", "toolName": "search"}),
    ("tool_executing", {"toolId": "t1", "toolName": "search", "input": {"query": "合同"}}),
    (
        "tool_call_message",
        {
            "id": "t1:call",
            "role": "assistant",
            "subtype": "tool-call",
            "toolCall": {"type": "tool-call", "id": "t1", "name": "search", "input": {"query": "合同"}},
            "timestamp": AT + 6,
            "parentId": "m2",
        },
    ),
    ("tool_result", {"toolCallId": "t1", "result": {"found": 1}, "isError": False}),
    ("tool_result_message", result_message({"type": "json", "value": {"found": 1}}, AT + 9)),
    ("text_delta", {"text": "\n\n你好 👋"}),
    ("conversation_responding", {}),
    ("message_delta", {"usage": {"inputTokens": 30, "outputTokens": 2}}),
]


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (
            RECORDED[-1].body,
            [*the_end("COMPLETED", "end_turn"), ("conversation_end", {"reason": "completed"})],
        ),
        (CANCELLED, [*the_end("CANCELLED", "other"), ("conversation_end", {"reason": "interrupted"})]),
        (
            TIMED_OUT,
            [
                *the_end("FAILED", "error"),
                ("error", {"message": "The turn took longer than 60 s.", "errorCode": "GENERATION_TIMEOUT"}),
                ("conversation_end", {"reason": "error"}),
                (
                    "error_occurred",
                    {
                        "code": "GENERATION_TIMEOUT",
                        "message": "The turn took longer than 60 s.",
                        "recoverable": True,
                    },
                ),
                (
                    "error_message",
                    {
                        "id": "m2:error",
                        "role": "error",
                        "subtype": "error",
                        "content": "The turn took longer than 60 s.",
                        "errorCode": "GENERATION_TIMEOUT",
                        "timestamp": ENDED,
                    },
                ),
            ],
        ),
    ],
    ids=["completed", "cancelled", "failed"],
)
def test_recorded_turn_as_envelopes(last: EventBody, end: list[tuple[str, Any]]):
    assert said(*BEGINNING, last) == [*BEGUN, *end]


def test_frame_carries_one_envelope_under_its_cursor():
    frames = told(AGENTX, RECORDED).decode().split("\n\n")
    context = (
        '"context":{"containerId":"a1","imageId":"c1","agentId":"c1","sessionId":"s1",'
        f'"turnId":"{CONTEXT.turn_id}"}}'
    )
    assert frames[0] == (
        f"id: {CONTEXT.turn_id}:1:0\nevent: conversation_start\n"
        f'data: {{"type":"conversation_start","timestamp":{AT + 1},"data":{{"messageId":"m2"}},'
        f'"source":"agent","category":"state","intent":"notification",{context}}}'
    )
    assert frames[13] == (
        f"id: {CONTEXT.turn_id}:12:0\nevent: text_delta\n"
        f'data: {{"type":"text_delta","timestamp":{AT + 12},"data":{{"text":"\\n\\n你好 👋"}},'
        f'"source":"agent","category":"stream","intent":"notification",{context}}}'
    )
    assert [frame.split("\n")[0] for frame in frames[-5:-1]] == [
        f"id: {CONTEXT.turn_id}:14:{n}" for n in range(4)
    ]


def test_categories_tell_stream_state_and_message_apart():
    agentx = AgentXTurn(CONTEXT)
    events = [*RECORDED, *turn(TIMED_OUT)]
    categories = {it.type: it.category for event in events for it in agentx.envelopes(event)}
    assert {name for name, it in categories.items() if it == "state"} == {
        "conversation_start",
        "conversation_responding",
        "tool_planned",
        "tool_executing",
        "conversation_end",
        "error_occurred",
    }
    assert {name for name, it in categories.items() if it == "message"} == {
        "tool_call_message",
        "tool_result_message",
        "assistant_message",
        "error_message",
    }


@patient
@given(replies)
def test_deltas_and_the_complete_message_say_what_the_message_says(events: list[TurnEvent]):
    agentx, ended = AgentXTurn(CONTEXT), turn(*(it.body for it in events), CANCELLED)
    envelopes = [it for event in ended for it in agentx.envelopes(event)]
    content = fold(REPLY, ended).content
    assert "".join(data_of(it)["text"] for it in envelopes if it.type == "text_delta") == content
    (complete,) = (data_of(it)["content"] for it in envelopes if it.type == "message_complete")
    assert complete == content
    messages = [data_of(it)["content"] for it in envelopes if it.type == "assistant_message"]
    assert messages in ([[{"type": "text", "text": content}]], [])


@patient
@given(turns)
def test_socket_and_stream_tell_the_same(events: list[TurnEvent]):
    agentx = AgentXTurn(CONTEXT)
    envelopes = [it for event in events for it in agentx.envelopes(event)]
    told_lines = told(AGENTX, events).decode().split("\n")
    assert [line[6:] for line in told_lines if line.startswith("data: ")] == [
        it.json().decode() for it in envelopes
    ]


def test_reader_that_broke_off_within_an_event_gets_the_rest_of_it():
    whole = told(AGENTX, RECORDED)
    ids = [line[4:] for line in whole.decode().split("\n") if line.startswith("id: ")]
    frames = whole.split(b"\n\n")
    for n, last_id in enumerate(ids):
        rest = told(AGENTX, RECORDED, AGENTX.position(CONTEXT, last_id))
        assert rest == b"\n\n".join(frames[n + 1 :])
    assert told(AGENTX, RECORDED, AGENTX.position(CONTEXT, ids[-1])) == b""


def test_cursor_of_another_turn_says_nothing_of_this_one():
    assert AGENTX.position(CONTEXT, f"{new_uuid()}:3:0") == START


def test_cursor_is_read_as_it_was_written():
    cursor = Cursor(CONTEXT.turn_id, 12, 3)
    assert parse_cursor(str(cursor)) == cursor
    assert str(cursor) == f"{CONTEXT.turn_id}:12:3"


@pytest.mark.parametrize("text", ["", "5", "a:1:0", f"{CONTEXT.turn_id}:0:0", f"{CONTEXT.turn_id}:1:-1"])
def test_what_is_no_cursor_is_refused(text: str):
    with pytest.raises(InvalidRequest):
        parse_cursor(text)


def test_wrapped_envelope_is_a_string_inside_json():
    envelope = event_envelope(TextDelta('"你好"\n'), 1, SessionContext("s1"))
    wrapped = json.loads(wrap(Cursor("t", 1, 0), envelope))
    assert wrapped == {"__msgId": "t:1:0", "__payload": envelope.json().decode()}
    assert json.loads(wrapped["__payload"])["data"] == {"text": '"你好"\n'}


@pytest.mark.parametrize("status", ["error", "timeout", "denied", "interrupted"])
def test_failed_tool_gives_its_error_as_result(status: Any):
    assert said(ToolResultStored("t1", "search", status, error="no")) == [
        ("tool_result", {"toolCallId": "t1", "result": "no", "isError": True}),
        ("tool_result_message", result_message({"type": "error-text", "value": "no"}, AT + 1)),
    ]


def test_result_that_is_a_text_is_one_in_its_message():
    assert said(ToolResultStored("t1", "search", "ok", "found"))[1] == (
        "tool_result_message",
        result_message({"type": "text", "value": "found"}, AT + 1),
    )


def test_turn_that_said_nothing_has_no_assistant_message():
    assert [name for name, _ in said(Text(" \n"), CANCELLED)] == [
        "text_delta", "conversation_responding", "message_stop", "message_complete", "conversation_end",
    ]  # fmt: skip


def test_turn_that_broke_off_before_its_first_event_still_names_its_message():
    assert said(Failed("INTERRUPTED", "The server stopped during this turn."))[1] == (
        "message_complete",
        {"messageId": "m2", "content": "", "status": "FAILED"},
    )


def test_agent_responds_once_a_model_call_however_many_pieces_it_says():
    pieces = (IterationStart(1), Text("a"), Text("b"), IterationStart(2), Text("c"))
    assert [name for name, _ in said(*pieces)] == [
        "text_delta", "conversation_responding", "text_delta", "text_delta", "conversation_responding",
    ]  # fmt: skip


@pytest.mark.parametrize("reason", ["tool_use", "max_iterations", "aborted", "anything"])
def test_end_is_never_told_in_words_that_agentx_does_not_end_on(reason: str):
    assert said(Done("COMPLETED", "m2", Usage(0, 0), reason))[0] == ("message_stop", {"stopReason": "other"})


def test_model_without_a_name_is_an_empty_text():
    assert said(TurnStart("c1", "m1", "m2", None))[1][1]["model"] == ""
