"""Events → the UI message stream: what each version is sent, and that it builds what the history says."""

import json
from dataclasses import replace
from typing import Any, Literal, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.ai_sdk.client import Client, Json, as_loaded, charts_last, chunks
from tests.protocols.recorded import CANCELLED, COMPLETED, CONTEXT, RECORDED, REPLY, TIMED_OUT, patient, turn
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    EventBody,
    IterationRestart,
    IterationStart,
    LogChunk,
    Notice,
    Retrieval,
    ReturnedImage,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.engine.fold import fold
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import encode_chunk
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.frames import Version
from threadkeep.protocols.ai_sdk.history import ui_message
from threadkeep.protocols.ai_sdk.parts import Reader

VERSIONS: tuple[Version, ...] = (5, 6, 7)
every_version = pytest.mark.parametrize("version", VERSIONS)
Status = Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]
START = TurnStart("c1", "m1", "m2", "scripted")
IMAGE = ReturnedImage(
    file_id=PayloadId("f1"), file_name="dot.png", media_type="image/png", size=3, width=1, height=1
)
CHART = {"kind": "bar", "rows": [{"x": "a", "y": 1}]}


def streamed(
    events: list[TurnEvent], version: Version, how: StreamEnd = StreamEnd.OVER, after: int = 0
) -> bytes:
    """All that a reader gets."""
    stream = UIMessageStream(CONTEXT, Reader(version, "http://here"), after)
    return b"".join(map(stream.encode, events)) + stream.end(how)


def types(*bodies: EventBody, version: Version = 6, how: StreamEnd = StreamEnd.OVER) -> list[str]:
    return [it["type"] for it in chunks(streamed(turn(START, *bodies), version, how))]


def history(events: list[TurnEvent], version: Version) -> Json:
    """The answer as the history has it."""
    message = ui_message(fold(REPLY, events), REPLY.id, Reader(version, "http://here"))
    return json.loads(msgspec.json.encode(message))


def ends_of(events: list[TurnEvent]) -> StreamEnd:
    return StreamEnd.OVER if events[-1].is_terminal else StreamEnd.PAUSED


def test_thought_tool_and_text_are_steps_of_one_message():
    assert chunks(streamed(RECORDED, 6)) == [
        {"type": "start", "messageId": "m2", "messageMetadata": {"turnId": CONTEXT.turn_id}},
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "1.1"},
        {"type": "reasoning-delta", "id": "1.1", "delta": "Let me\nlook."},
        {"type": "reasoning-end", "id": "1.1"},
        {"type": "text-start", "id": "1.2"},
        {"type": "text-delta", "id": "1.2", "delta": 'Looking …\n"now"\r\n'},
        {"type": "text-end", "id": "1.2"},
        {
            "type": "tool-input-available",
            "toolCallId": "t1",
            "toolName": "search",
            "input": {"query": "合同"},
            "providerMetadata": {"threadkeep": {"server": "docs"}},
            "dynamic": True,
            "providerExecuted": True,
        },
        {
            "type": "data-tool-progress",
            "data": {"toolCallId": "t1", "progress": 1.0, "message": "half"},
            "transient": True,
        },
        {"type": "source-document", "sourceId": "1", "mediaType": "text/plain", "title": "a.pdf"},
        {
            "type": "data-retrieval",
            "data": {
                "query": "合同",
                "passages": [{"sourceId": "1", "title": "a.pdf", "page": 3, "text": "条款", "score": 0.5}],
            },
        },
        {"type": "tool-output-available", "toolCallId": "t1", "output": {"found": 1}, "dynamic": True},
        {"type": "data-notice", "data": {"code": "MCP_SERVER_UNAVAILABLE", "message": "mail is away"}},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "2.1"},
        {"type": "text-delta", "id": "2.1", "delta": "你好 👋"},
        {"type": "text-end", "id": "2.1"},
        {"type": "finish-step"},
        {
            "type": "finish",
            "finishReason": "stop",
            "messageMetadata": {
                "model": "scripted",
                "usage": {"inputTokens": 40, "outputTokens": 6, "totalTokens": 46},
            },
        },
    ]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content-filter"),
        ("max_iterations", "other"),
    ],
)
def test_reason_for_the_end_is_one_of_theirs(reason: str, told: str):
    *_, finish = chunks(streamed(turn(START, replace(COMPLETED, stop_reason=reason)), 5))
    assert finish["finishReason"] == told


def test_stopped_turn_ends_its_text_and_says_abort():
    assert types(IterationStart(1), Text("So"), CANCELLED)[-2:] == ["text-end", "abort"]


@every_version
def test_failed_turn_keeps_its_text_and_says_why(version: Version):
    got = chunks(streamed(turn(START, IterationStart(1), Text("So"), TIMED_OUT), version))
    assert [it["type"] for it in got[-3:]] == ["text-end", "data-error", "error"]
    assert got[-1]["errorText"] == TIMED_OUT.message
    assert got[-2]["data"] == {"code": TIMED_OUT.code, "message": TIMED_OUT.message, "retryable": True}


ASKED = (
    IterationStart(1),
    ToolCalled("t1", "send", "mail", {"to": "bob"}, asks=True),
    ApprovalRequest("r1", ApprovalKind.TOOL, "Send the mail?", 9, "t1"),
)


def test_pause_ends_the_stream_and_the_answer_begins_another():
    assert types(*ASKED, how=StreamEnd.PAUSED) == [
        *("start", "start-step", "tool-input-available", "tool-approval-request"),
        *("finish-step", "finish"),
    ]
    denied = ToolResultStored("t1", "send", "denied", error="The user refused.")
    answered = turn(START, *ASKED, ApprovalResponse("r1", ApprovalAction.DENY), denied, CANCELLED)
    assert [it["type"] for it in chunks(streamed(answered, 6, after=4))] == [
        *("start", "tool-output-denied", "abort")
    ]
    assert [it["type"] for it in chunks(streamed(answered, 7, after=4))] == [
        *("start", "tool-approval-response", "tool-output-denied", "abort")
    ]


def test_call_that_nobody_was_asked_about_was_not_denied_by_the_user():
    denied = ToolResultStored("t1", "send", "denied", error="A rule forbids it.")
    got = chunks(streamed(turn(START, ToolCalled("t1", "send", "mail", {}), denied, CANCELLED), 6))
    assert (got[2]["type"], got[2]["errorText"]) == ("tool-output-error", "A rule forbids it.")


def test_version_5_is_told_in_words_what_the_turn_waits_for():
    question = ApprovalRequest("r2", ApprovalKind.QUESTION, "Which one?", 9)
    got = chunks(streamed(turn(START, *ASKED, question), 5, StreamEnd.PAUSED))
    assert [it["delta"] for it in got if it["type"] == "text-delta"] == ["Send the mail?", "Which one?"]


def test_question_gets_its_answer_in_place():
    asked = ApprovalRequest("r1", ApprovalKind.QUESTION, "Which one?", 9, schema={"type": "object"})
    answer = ApprovalResponse("r1", ApprovalAction.ANSWER, content={"one": 1})
    message = Client(6).read(streamed(turn(START, asked, answer, CANCELLED), 6))
    data = {"requestId": "r1", "message": "Which one?", "schema": {"type": "object"}, "expiresAt": 9}
    told = {"action": "answer", "content": {"one": 1}}
    assert message["parts"] == [{"type": "data-question", "id": "r1", "data": {**data, "answer": told}}]


def test_tool_of_the_client_is_left_to_the_client():
    called = ToolCalled("t1", "locate", "client", {"exact": True})
    (_, got) = chunks(streamed(turn(START, called), 6, StreamEnd.PAUSED))[:2]
    assert "providerExecuted" not in got
    assert "dynamic" not in got


def test_tool_of_the_client_waits_for_the_user_before_the_client_may_run_it():
    asked = (
        ToolCalled("t1", "erase", "client", {"all": True}, asks=True),
        ApprovalRequest("r1", ApprovalKind.TOOL, "Erase?", 9, "t1"),
    )
    client = Client(6)
    (part,) = client.read(streamed(turn(START, *asked), 6, StreamEnd.PAUSED))["parts"]
    assert (part["state"], part["input"]) == ("approval-requested", {"all": True})
    allowed = (
        ApprovalResponse("r1", ApprovalAction.ALLOW),
        ApprovalRequest("r2", ApprovalKind.CLIENT_TOOL, "Run it.", 9, "t1"),
    )
    events = turn(START, *asked, *allowed)
    client.read(streamed(events, 6, StreamEnd.PAUSED, after=3))
    assert part["state"] == "input-available"
    assert history(events, 6)["parts"][0]["state"] == "input-available"


def test_repeated_call_takes_back_its_text_where_the_version_can():
    bodies = (
        IterationStart(1),
        Thought("Hm"),
        Text("Old"),
        TurnResumed(1),
        IterationRestart(1, 2),
        Text("New"),
    )
    events = turn(START, *bodies, COMPLETED)
    message = Client(7).read(streamed(events, 7))
    assert [it.get("text") for it in message["parts"]] == [None, "New"]
    message = Client(6).read(streamed(events, 6))
    assert [it.get("text", it["type"]) for it in message["parts"]] == [
        *("step-start", "Hm", "Old", "data-superseded", "step-start", "New")
    ]


def test_sources_have_the_numbers_that_the_answer_cites():
    page = RetrievalHit("A page", "…", 0.5, "c1", url="https://example.com")
    file = RetrievalHit("b.pdf", "…", 0.4, "c2", "d2")
    events = turn(START, Retrieval("a", (page, file)), Retrieval("b", (file, page)), CANCELLED)
    got = [it for it in chunks(streamed(events, 6)) if it["type"].startswith("source-")]
    assert got == [
        {"type": "source-url", "sourceId": "1", "url": "https://example.com", "title": "A page"},
        {
            "type": "source-document",
            "sourceId": "2",
            "mediaType": "application/pdf",
            "title": "b.pdf",
            "filename": "b.pdf",
        },
    ]


def test_image_and_chart_follow_their_result():
    resulted = ToolResultStored("t1", "draw", "ok", "drawn", chart_data=CHART, images=(IMAGE,))
    got = chunks(streamed(turn(START, ToolCalled("t1", "draw", "art", {}), resulted, CANCELLED), 6))
    url = "http://here/api/files/f1?preview=true"
    assert got[3:5] == [
        {"type": "file", "mediaType": "image/png", "url": url},
        {"type": "data-chart", "id": "t1", "data": {"toolCallId": "t1", "chart": CHART}},
    ]


def test_stored_chunks_become_the_same_stream():
    stream = UIMessageStream(CONTEXT, Reader(6, "http://here"))
    stored = LogChunk(CONTEXT.turn_id, 1, len(RECORDED), encode_chunk(RECORDED))
    told = stream.encode_chunk(stored) + stream.end(StreamEnd.OVER)
    assert chunks(told) == chunks(streamed(RECORDED, 6))


# Any turn

words = st.sampled_from(["Numbers", " first.", "\n", " ", "", "合同", "👋", "[DONE]"])
hits = st.builds(
    RetrievalHit,
    st.sampled_from(["a.pdf", "b.md", "memory"]),
    words,
    st.just(0.5),
    st.none() | st.sampled_from(["k1", "k2", "k3"]),
    st.none() | st.just("d1"),
    st.none() | st.just(3),
    st.none() | st.just("https://example.com"),
)


@st.composite
def spoken(draw: st.DrawFn) -> list[EventBody]:
    """What a model call says."""
    pieces = st.builds(Text, words) | st.builds(Thought, words) | st.just(Notice("X", "away"))
    return draw(st.lists(pieces, max_size=4))


@st.composite
def decided(draw: st.DrawFn, call: ToolCalled) -> list[EventBody]:
    """The result of a call, after the user's decision if it asks."""
    bodies: list[EventBody] = []
    status: Status = draw(st.sampled_from(get_args(Status)))
    if call.asks:
        allowed = draw(st.booleans())
        action = ApprovalAction.ALLOW if allowed else ApprovalAction.DENY
        bodies.append(ApprovalResponse(f"r-{call.tool_call_id}", action))
        status = "ok" if allowed else "denied"
    elif call.server == "client":
        status = draw(st.sampled_from(["ok", "error"]))
        bodies.append(ApprovalResponse(f"c-{call.tool_call_id}", ApprovalAction.RESULT))
    elif draw(st.booleans()):
        bodies.append(ToolProgress(call.tool_call_id, 1.0))
    if draw(st.booleans()):
        bodies.append(Retrieval("q", tuple(draw(st.lists(hits, min_size=1, max_size=3))), call.tool_call_id))
    bodies.append(
        ToolResultStored(
            call.tool_call_id,
            call.tool_name,
            status,
            result=None if status != "ok" else draw(st.sampled_from([None, "text", {"a": [1]}])),
            error=None if status == "ok" else draw(st.sampled_from([None, "It failed."])),
            chart_data=draw(st.none() | st.just(CHART)),
            images=draw(st.sampled_from([(), (IMAGE,)])),
        )
    )
    return bodies


@st.composite
def any_turn(draw: st.DrawFn) -> list[TurnEvent]:
    """Turns as they happen: calls that are repeated, pause, ask, use tools, and are steered."""
    bodies: list[EventBody] = [START]
    if draw(st.booleans()):
        bodies.append(Retrieval("q", tuple(draw(st.lists(hits, min_size=1, max_size=3)))))
    for iteration in range(1, draw(st.integers(1, 3)) + 1):
        bodies.append(IterationStart(iteration))
        for restart in range(draw(st.integers(0, 2))):
            bodies += [*draw(spoken()), TurnResumed(restart + 1), IterationRestart(iteration)]
        bodies += [*draw(spoken()), UsageReported(3, 2, model=draw(st.none() | st.just("other")))]
        servers = draw(st.lists(st.sampled_from(["docs", "client"]), max_size=3))
        calls = [
            ToolCalled(
                f"{iteration}.{at}",
                "search",
                server,
                {"n": at},
                asks=server == "docs" and draw(st.booleans()),
            )
            for at, server in enumerate(servers)
        ]
        bodies += calls
        bodies += [
            ApprovalRequest(
                f"r-{it.tool_call_id}", ApprovalKind.TOOL, f"May I {it.tool_call_id}?", 9, it.tool_call_id
            )
            for it in calls
            if it.asks
        ]
        bodies += [
            ApprovalRequest(f"c-{it.tool_call_id}", ApprovalKind.CLIENT_TOOL, "Run it.", 9, it.tool_call_id)
            for it in calls
            if it.server == "client"
        ]
        if draw(st.booleans()):
            id_ = f"q-{iteration}"
            bodies.append(ApprovalRequest(id_, ApprovalKind.QUESTION, "Which?", 9))
            bodies.append(ApprovalResponse(id_, ApprovalAction.ANSWER, content=draw(words)))
        for call in draw(st.permutations(calls)):
            bodies += draw(decided(call))
        if draw(st.booleans()):
            bodies.append(UserMessage(f"s-{iteration}", draw(words)))
    end = draw(st.sampled_from([COMPLETED, CANCELLED, TIMED_OUT]))
    if end is COMPLETED:
        bodies += [IterationStart(9), Text("There."), UsageReported(3, 2)]
    usage = fold(REPLY, turn(*bodies)).usage
    assert usage is not None
    return turn(*bodies, replace(end, usage=usage) if end is COMPLETED else end)


def known_to_all(message: Any) -> Any:
    """Without what only the client that decided knows before version 7."""
    kept = {**message, "parts": [dict(it) for it in message["parts"]]}
    for part in kept["parts"]:
        if "approval" in part:
            part["approval"] = {name: it for name, it in part["approval"].items() if name != "approved"}
            if part["state"] == "approval-responded":
                part["state"] = "approval-requested"
    return kept


def compared(message: Json, version: Version) -> Json:
    shown = {**message, "parts": charts_last(message["parts"])}
    return shown if version == 7 else known_to_all(shown)


@every_version
@patient
@given(events=any_turn())
def test_client_builds_what_the_history_says(version: Version, events: list[TurnEvent]):
    built = Client(version).read(streamed(events, version))
    assert compared(as_loaded(built), version) == compared(history(events, version), version)


@every_version
@patient
@given(events=any_turn(), data=st.data())
def test_every_beginning_ends_validly_and_shows_what_the_history_does(
    version: Version, events: list[TurnEvent], data: st.DataObject
):
    seen = events[: data.draw(st.integers(1, len(events)))]
    built = Client(version).read(streamed(seen, version, ends_of(seen)))
    if not isinstance(seen[-1].body, IterationRestart):  # what it supersedes goes when something follows
        assert compared(as_loaded(built), version) == compared(history(seen, version), version)


@every_version
@patient
@given(events=any_turn(), data=st.data())
def test_attaching_late_gives_the_same_bytes(version: Version, events: list[TurnEvent], data: st.DataObject):
    cut = data.draw(st.integers(0, len(events)))
    stream = UIMessageStream(CONTEXT, Reader(version, "http://here"))
    stored = [events[:cut], *([it] for it in events[cut:])]
    chunks_ = [LogChunk(CONTEXT.turn_id, it[0].seq, it[-1].seq, encode_chunk(it)) for it in stored if it]
    assert b"".join(map(stream.encode_chunk, chunks_)) + stream.end(StreamEnd.OVER) == streamed(
        events, version
    )
