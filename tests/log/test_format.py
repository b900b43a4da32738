"""The `events` dialect, and the log as it is stored."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import AT, CONTEXT, KINDS, RECORDED, patient, told, turn, turns
from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.events import (
    ApprovalResponse,
    EventBody,
    Failed,
    LogChunk,
    Retrieval,
    RetrievalHit,
    Text,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnStart,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.log.format import (
    decode_chunk,
    encode_chunk,
    put_back,
    references_in,
)
from threadkeep.protocols.dialect import Position
from threadkeep.protocols.threadkeep.encode import EVENTS, frames_of_chunk
from threadkeep.wire.events import UnreadableEvent, decode_event, encode_event


def chunk_of_events(events: list[TurnEvent]) -> LogChunk:
    return LogChunk(CONTEXT.turn_id, events[0].seq, events[-1].seq, encode_chunk(events))


def further(body: EventBody) -> str:
    """What an event says after its head."""
    (event,) = turn(body)
    head = f'{{"type":"{body.type}","turn_id":"{CONTEXT.turn_id}","seq":1,"at":{AT + 1},'
    text = encode_event(event).decode()
    assert text.startswith(head)
    assert text.endswith("}")
    return text.removeprefix(head).removesuffix("}")


def test_recorded_turn_as_frames():
    frames = told(EVENTS, RECORDED).decode().split("\n\n")
    assert len(frames) == 14 + 1
    assert frames[3] == (
        f'id: 4\nevent: text\ndata: {{"type":"text","turn_id":"{CONTEXT.turn_id}","seq":4,"at":{AT + 4},'
        r'"text":"Looking …\n\"now\"\r\n"}'
    )
    assert frames[11] == (
        f'id: 12\nevent: text\ndata: {{"type":"text","turn_id":"{CONTEXT.turn_id}","seq":12,"at":{AT + 12},'
        '"text":"你好 👋"}'
    )
    assert frames[13] == (
        f'id: 14\nevent: done\ndata: {{"type":"done","turn_id":"{CONTEXT.turn_id}","seq":14,"at":{AT + 14},'
        '"status":"COMPLETED","message_id":"m2",'
        '"usage":{"input_tokens":40,"output_tokens":6,"estimated":true,'
        '"cache_read_tokens":0,"cache_write_tokens":0},"stop_reason":"end_turn"}'
    )
    assert frames[14] == ""


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (
            TurnStart("c", "u", "a", None),
            '"conversation_id":"c","user_message_id":"u","message_id":"a","model":null',
        ),
        (
            Retrieval("q", (RetrievalHit("s", "t", 0.5),)),
            '"query":"q","hits":[{"source":"s","text":"t","score":0.5,'
            '"chunk_id":null,"document_id":null,"page":null}]',
        ),
        (
            ToolCalled("t", "n", "s", {"a": 1}),
            '"tool_call_id":"t","tool_name":"n","server":"s","arguments":{"a":1}',
        ),
        (ToolProgress("t", 0.5), '"tool_call_id":"t","progress":0.5'),
        (ToolProgress("t", 0.0, 0.0), '"tool_call_id":"t","progress":0.0,"total":0.0'),
        (ToolProgress("t", 1, 2, "m"), '"tool_call_id":"t","progress":1,"total":2,"message":"m"'),
        (
            ToolResultStored("t", "n", "ok", None),
            '"tool_call_id":"t","tool_name":"n","status":"ok","result":null,"duration_ms":0',
        ),
        (
            ToolResultStored("t", "n", "ok", [], None, 3, {"x": 1}, ("p",)),
            '"tool_call_id":"t","tool_name":"n","status":"ok","result":[],"duration_ms":3,'
            '"chart_data":{"x":1},"artifact_ids":["p"]',
        ),
        (
            ToolResultStored("t", "n", "timeout", error="late"),
            '"tool_call_id":"t","tool_name":"n","status":"timeout","error":"late","duration_ms":0',
        ),
        (
            ApprovalResponse("r", ApprovalAction.ALLOW, content=False),
            '"request_id":"r","action":"allow","content":false',
        ),
        (Failed("X", "y"), '"code":"X","message":"y","retryable":false'),
    ],
)
def test_optional_fields_are_left_out_and_the_others_never(body: EventBody, fields: str):
    assert further(body) == fields


@patient
@given(turns)
def test_log_is_read_as_it_was_written(events: list[TurnEvent]):
    assert decode_chunk(encode_chunk(events)) == events
    assert decode_chunk(encode_chunk(events).encode()) == events
    assert [decode_event(encode_event(event)) for event in events] == [as_shown(it) for it in events]


def as_shown(event: TurnEvent) -> TurnEvent:
    """An event without what only the server needs."""
    is_call = isinstance(event.body, ToolCalled)
    return replace(event, body=replace(event.body, model_name="")) if is_call else event


CALL = ToolCalled("t", "n", "s", {"a": "\t"}, model_name="s__n")
STORED_CALL = (
    f'{{"type":"tool_call","turn_id":"{CONTEXT.turn_id}","seq":1,"at":{AT + 1},'
    r'"tool_call_id":"t","tool_name":"n","server":"s","arguments":{"a":"\t"}}'
)


def test_private_fields_follow_the_event_after_a_tab():
    (event,) = turn(CALL)
    assert encode_chunk([event]) == STORED_CALL + '\t{"model_name":"s__n"}'
    assert encode_event(event).decode() == STORED_CALL


def test_chunk_of_an_older_version_has_no_private_fields():
    assert decode_chunk(STORED_CALL) == [as_shown(it) for it in turn(CALL)]


def test_private_fields_of_a_newer_version_are_passed_over():
    assert decode_chunk(STORED_CALL + '\t{"model_name":"s__n","more":[1]}') == turn(CALL)
    (said,) = turn(Text("x"))
    assert decode_chunk(encode_chunk([said]) + '\t{"more":1}') == [said]


def test_entry_of_the_journal_is_no_event():
    events = turn(Text("a"), CALL)
    first, second = encode_chunk(events).split("\n")
    stored = "\n".join(['\t{"blocks":[]}', first, '\t{"refs":{"a":"b"}}', second, '\t{"dispatched":"t"}'])
    assert decode_chunk(stored) == events
    assert references_in(stored) == []
    assert put_back(stored, {}) == stored
    assert decode_chunk('\t{"blocks":[]}') == []


def test_private_fields_stay_when_a_value_is_put_back():
    value = PayloadId("p")
    (event,) = turn(replace(CALL, arguments={}, refs={"arguments": value}))
    stored = encode_chunk([event])
    assert references_in(stored) == [value]
    assert decode_chunk(put_back(stored, {value: rb'{"a":"\t"}'})) == turn(CALL)


@patient
@given(turns)
def test_event_is_one_line_of_plain_json(events: list[TurnEvent]):
    for event in events:
        raw = encode_event(event)
        assert b"\n" not in raw
        assert b"\r" not in raw
        assert list(json.loads(raw))[:4] == ["type", "turn_id", "seq", "at"]


@patient
@given(turns, st.integers(1, 10**12), st.integers(-1, 13))
def test_spliced_frames_are_the_encoded_ones(events: list[TurnEvent], first_seq: int, seen: int):
    moved = [TurnEvent(it.turn_id, first_seq + n, it.at, it.body) for n, it in enumerate(events)]
    after = first_seq - 1 + seen
    encoder = EVENTS.start(CONTEXT, Position(after))
    encoded = b"".join(map(encoder.encode, moved))
    assert frames_of_chunk(chunk_of_events(moved), after) == encoded


def test_every_kind_of_event_is_tried():
    assert set(KINDS) == set(get_args(EventBody))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b'{"type":"sang","turn_id":"t","seq":1,"at":1,"text":"x"}', "Unknown event type 'sang'"),
        (b'{"type":"text","turn_id":"t","seq":1,"at":1}', "required field `text`"),
        (b'{"type":"text","turn_id":"t","seq":"1","at":1,"text":"x"}', r"\$\.seq"),
        (b'{"type":"text","turn_id":"t","seq":1', "truncated"),
        (b"[]", "object"),
    ],
)
def test_what_is_no_event_is_refused_by_name(raw: bytes, says: str):
    with pytest.raises(UnreadableEvent, match=says):
        decode_event(raw)


def test_private_fields_that_cannot_be_read_are_refused_by_name():
    with pytest.raises(UnreadableEvent, match="private fields"):
        decode_chunk(STORED_CALL + '\t{"model_name":1}')


def test_empty_log_has_no_events():
    assert decode_chunk("") == []


def test_unicode_line_breaks_do_not_break_a_line_of_the_log():
    events = turn(Text("a\u2028b\x85c\x0bd"), Text("e"))
    assert decode_chunk(encode_chunk(events)) == events
    assert frames_of_chunk(chunk_of_events(events), 0).count(b"\n\n") == 2
