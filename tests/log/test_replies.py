"""A turn whose log was trimmed is replayed from its message, part by part."""

import json
from dataclasses import replace

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
)
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, ApprovalScope
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import MessageId, PayloadId
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.parts import Parts, TextPart, ThoughtPart, ToolCallPart
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.fold import fold
from threadkeep.log import replies as log_replies
from threadkeep.log.format import decode_chunk
from threadkeep.log.replies import events_of, replayed
from threadkeep.protocols.threadkeep.encode import TEXT

TURN = Turn(
    id=CONTEXT.turn_id,
    conversation_id=CONTEXT.conversation_id,
    user_message_id=MessageId("m1"),
    assistant_message_id=CONTEXT.message_id,
    status=TurnStatus.COMPLETED,
    started_at=AT,
    model="scripted",
    ended_at=AT + 14,
)


def again(events: list[TurnEvent]) -> tuple[Message, Message]:
    """A reply, and what its replay folds to."""
    reply = fold(REPLY, events)
    return reply, fold(REPLY, events_of(TURN, reply))


def without_times(parts: Parts) -> list[object]:
    """What counts: an event has one time, and a text none that is kept."""
    return [
        replace(part, started_at=0, duration_ms=0)
        if isinstance(part, ThoughtPart)
        else replace(part, at=0)
        if hasattr(part, "at")
        else part
        for part in parts
    ]


async def test_replay_has_the_parts_in_their_order_and_says_that_it_is_one():
    (chunk,) = await replayed(TURN, fold(REPLY, RECORDED))
    bodies = [event.body for event in decode_chunk(chunk.events)]
    assert bodies == [
        TurnStart("c1", "m1", "m2", "scripted"),
        IterationStart(1),
        Thought("Let me\nlook."),
        Text('Looking …\n"now"\r\n'),
        ToolCalled("t1", "search", "docs", {"query": "合同"}),
        Retrieval("合同", BEGINNING[7].hits, "t1"),
        Notice("MCP_SERVER_UNAVAILABLE", "mail is away"),
        ToolResultStored("t1", "search", "ok", {"found": 1}, duration_ms=12),
        IterationStart(2),
        Text("你好 👋"),
        UsageReported(40, 6, estimated=True, model="scripted"),
        Done("COMPLETED", "m2", Usage(40, 6, estimated=True), "end_turn"),
    ]
    assert all(json.loads(line)["replayed"] is True for line in chunk.events.split("\n"))


async def test_long_replay_is_made_of_short_chunks(monkeypatch: pytest.MonkeyPatch):
    reply = fold(REPLY, RECORDED)
    (whole,) = await replayed(TURN, reply)
    monkeypatch.setattr(log_replies, "REPLAYED_AT_ONCE", 5)
    chunks = await replayed(TURN, reply)
    assert [(it.first_seq, it.last_seq) for it in chunks] == [(1, 5), (6, 10), (11, 12)]
    assert "\n".join(it.events for it in chunks) == whole.events


def test_replay_folds_to_the_same_message():
    for end in (RECORDED[-1].body, CANCELLED, TIMED_OUT):
        reply, once_more = again(turn(*BEGINNING, end))
        assert once_more == reply


@patient
@given(replies)
def test_any_replay_shows_the_same_parts(events: list[TurnEvent]):
    reply, once_more = again(turn(*(it.body for it in events), CANCELLED))
    assert without_times(once_more.parts) == without_times(reply.parts)
    assert once_more.content == reply.content


def timed(*events: tuple[int, EventBody]) -> list[TurnEvent]:
    return [TurnEvent(TURN.id, seq, AT + at, body) for seq, (at, body) in enumerate(events, 1)]


def test_calls_that_ran_side_by_side_overlap_in_a_replay():
    log = timed(
        (0, TurnStart("c1", "m1", "m2", "scripted")),
        (0, IterationStart(1)),
        (700, ToolCalled("t1", "weather", "office", {"city": "Oslo"})),
        (700, ToolCalled("t2", "weather", "office", {"city": "Bergen"})),
        (700, ToolCalled("t3", "weather", "office", {"city": "Tromsø"})),
        (2600, ToolResultStored("t2", "weather", "ok", "rain", duration_ms=1900)),
        (2700, ToolResultStored("t1", "weather", "ok", "sun", duration_ms=2000)),
        (2700, ToolResultStored("t3", "weather", "ok", "snow", duration_ms=2000)),
        (2700, IterationStart(2)),
        (2700, Text("Rain in Bergen.")),
    )
    reply = fold(REPLY, [*log, *timed((2900, CANCELLED))])
    assert [replace(event, seq=0) for event in events_of(replace(TURN, ended_at=AT + 2900), reply)][:10] == [
        replace(event, seq=0) for event in log
    ]


def test_call_ends_after_the_user_allowed_it_in_a_replay():
    allowed = ApprovalResponse("r1", ApprovalAction.ALLOW, ApprovalScope.ONCE)
    log = timed(
        (0, TurnStart("c1", "m1", "m2", "scripted")),
        (0, IterationStart(1)),
        (100, ToolCalled("t1", "remove_file", "office", {}, asks=True)),
        (100, ApprovalRequest("r1", ApprovalKind.TOOL, "Remove?", AT + 90_000, "t1")),
        (100, ToolCalled("t2", "weather", "office", {})),
        (300, ToolResultStored("t2", "weather", "ok", "sun", duration_ms=200)),
        (60_000, allowed),
        (60_050, ToolResultStored("t1", "remove_file", "ok", "gone", duration_ms=50)),
    )
    reply = fold(REPLY, [*log, *timed((60_100, CANCELLED))])
    again = [(event.at - AT, event.body) for event in events_of(replace(TURN, ended_at=AT + 60_100), reply)]
    assert again[:8] == [(event.at - AT, event.body) for event in log]


def test_text_of_two_calls_is_apart_in_a_replay_too():
    events: list[EventBody] = [IterationStart(1), Text("One."), IterationStart(2)]
    reply = fold(REPLY, turn(*events, Text("Two."), RECORDED[-1].body))
    assert told(TEXT, list(events_of(TURN, reply))) == told(TEXT, turn(*events, Text("Two.")))


def test_values_that_lie_apart_and_files_keep_their_places():
    reply = fold(REPLY, turn(*BEGINNING, CANCELLED))
    (call,) = reply.tool_calls
    refs = {"arguments": PayloadId("p1"), "result": PayloadId("p2")}
    large = replace(call, arguments={}, result=None, refs=refs, artifact_ids=(PayloadId("p3"),))
    reply = replace(reply, parts=(ToolCallPart(call=large, iteration=1),))
    (_, _, called, resulted, *_) = [event.body for event in events_of(TURN, reply)]
    assert isinstance(called, ToolCalled)
    assert called.refs == {"arguments": "p1"}
    assert isinstance(resulted, ToolResultStored)
    assert (resulted.refs, resulted.artifact_ids) == ({"result": "p2"}, ("p3",))


def test_superseded_parts_are_not_replayed():
    parts = (TextPart(text="old", iteration=1, superseded=True), TextPart(text="new", iteration=1))
    reply = replace(fold(REPLY, RECORDED), parts=parts)
    assert [event.body for event in events_of(TURN, reply) if isinstance(event.body, Text)] == [Text("new")]


def test_failed_reply_without_a_reason_ends_as_failed():
    reply = replace(REPLY, status=MessageStatus.FAILED, completed_at=AT)
    *_, last = events_of(TURN, reply)
    assert isinstance(last.body, Failed)
