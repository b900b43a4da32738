"""Every log of a turn becomes a stream that clients accept, and the messages that the history has."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.ag_ui.client import Client
from tests.protocols.recorded import BEGINNING, CANCELLED, COMPLETED, CONTEXT, REPLY, TIMED_OUT, patient, turn
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
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.engine.fold import fold
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import encode_chunk
from threadkeep.protocols.ag_ui.encode import Run, RunEncoder
from threadkeep.protocols.ag_ui.frames import encode_json
from threadkeep.protocols.ag_ui.messages import messages_of

RUN = Run(thread_id="thread", run_id="run", is_1_0=True)
EXPIRES_AT = 1_900_000_000_000


def started(run: Run = RUN, after: int = 0) -> RunEncoder:
    return RunEncoder(run, CONTEXT.turn_id, CONTEXT.message_id, after)


def told(events: list[TurnEvent], run: Run = RUN, after: int = 0) -> bytes:
    """All that a reader gets of a turn; one that has not ended is waiting."""
    encoder = started(run, after)
    told = b"".join(map(encoder.encode, events))
    return told if events and events[-1].is_terminal else told + encoder.end(StreamEnd.PAUSED)


def received(*bodies: EventBody, run: Run = RUN) -> tuple[Client, list[dict[str, Any]]]:
    client = Client()
    return client, client.read(told(turn(*bodies), run))


def history(events: list[TurnEvent]) -> list[dict[str, Any]]:
    """The reply as a snapshot has it."""
    return json.loads(encode_json(messages_of(fold(REPLY, events), "unused")))


def test_turn_becomes_a_run_with_everything_in_it():
    client, events = received(*BEGINNING, COMPLETED)
    assert [it["type"] for it in events] == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "CUSTOM",
        "ACTIVITY_SNAPSHOT",
        "TOOL_CALL_RESULT",
        "CUSTOM",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert events[0] == {
        "type": "RUN_STARTED",
        "threadId": "thread",
        "runId": "run",
        "metadata": {"turnId": CONTEXT.turn_id},
    }
    assert events[-1] == {
        "type": "RUN_FINISHED",
        "threadId": "thread",
        "runId": "run",
        "usage": [{"inputTokens": 40, "outputTokens": 6, "totalTokens": 46, "cachedInputTokens": 0}],
    }
    assert [(it["id"], it["role"]) for it in client.messages] == [
        ("m2-thought", "reasoning"),
        ("m2", "assistant"),
        ("t1", "assistant"),
        ("t1-result", "tool"),
        ("m2-sources", "activity"),
        ("m2-2", "assistant"),
    ]
    sources = client.messages[4]["content"]["sources"]
    assert sources == [{"index": 1, "title": "a.pdf", "snippet": "条款", "score": 0.5, "page": 3}]


def test_run_echoes_the_state_and_begins_with_the_history_that_was_asked_for():
    asked = Run(thread_id="t", run_id="r", is_1_0=True, state={"at": None}, history=())
    client, events = received(*BEGINNING, COMPLETED, run=asked)
    assert [it["type"] for it in events[:3]] == ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    assert client.state == {"at": None}


def test_stopped_run_says_so_to_those_who_know_the_word():
    assert received(*BEGINNING, CANCELLED)[1][-1]["outcome"] == {"type": "cancelled"}
    older = Run(thread_id="t", run_id="r", is_1_0=False)
    assert "outcome" not in received(*BEGINNING, CANCELLED, run=older)[1][-1]


def test_failed_run_ends_with_its_error_after_all_is_closed():
    _, events = received(*BEGINNING[:4], TIMED_OUT)
    assert [it["type"] for it in events[-2:]] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert events[-1]["message"] == TIMED_OUT.message
    assert events[-1]["code"] == "GENERATION_TIMEOUT"


def asking(id_: str, kind: ApprovalKind = ApprovalKind.TOOL, call: str | None = None) -> ApprovalRequest:
    return ApprovalRequest(id_, kind, "May I?", EXPIRES_AT, call)


def test_pause_ends_the_run_with_every_request_that_is_open():
    client, events = received(
        *BEGINNING[:2],
        ToolCalled("t1", "send", "mail", {}),
        ToolCalled("t2", "send", "mail", {}),
        asking("q1", call="t1"),
        asking("q2", call="t2"),
        asking("q3", ApprovalKind.QUESTION),
        ApprovalResponse("q2", ApprovalAction.ALLOW),
    )
    assert events[-1]["outcome"]["type"] == "interrupt"
    assert [(it["id"], it["reason"], it.get("toolCallId")) for it in client.interrupts] == [
        ("q1", "approval", "t1"),
        ("q3", "question", None),
    ]
    assert client.interrupts[0]["expiresAt"] == "2030-03-17T17:46:40Z"
    assert "approved" in client.interrupts[0]["responseSchema"]["properties"]


def test_call_that_the_client_runs_is_no_interrupt():
    waiting = asking("q1", ApprovalKind.CLIENT_TOOL, "t1")
    client, events = received(*BEGINNING[:2], ToolCalled("t1", "colour", "client", {}), waiting)
    assert "outcome" not in events[-1]
    client, _ = received(*BEGINNING[:2], ToolCalled("t1", "colour", "client", {}), waiting, asking("q2"))
    assert [it["id"] for it in client.interrupts] == ["q2"]


def test_result_that_the_client_brought_is_not_sent_back():
    bodies = *BEGINNING[:9], COMPLETED
    brought = Run(thread_id="t", run_id="r", is_1_0=True, results=frozenset({"t1"}))
    assert "TOOL_CALL_RESULT" in [it["type"] for it in received(*bodies)[1]]
    assert "TOOL_CALL_RESULT" not in [it["type"] for it in received(*bodies, run=brought)[1]]


def test_text_of_a_repeated_model_call_leaves_the_chat():
    client, _ = received(
        *BEGINNING[:4], TurnResumed(2), IterationRestart(1, 2), Text("Done."), UsageReported(1, 1), COMPLETED
    )
    assert [(it["id"], it["role"], it["content"]) for it in client.messages] == [
        ("m2-thought", "activity", {"text": "Let me\nlook."}),
        ("m2", "activity", {"text": 'Looking …\n"now"\r\n'}),
        ("m2-2", "assistant", "Done."),
    ]


def test_result_with_more_than_its_content():
    chart = {"kind": "bar"}
    result = ToolResultStored("t1", "draw", "error", error="No.", chart_data=chart, artifact_ids=("p1",))
    client, _ = received(*BEGINNING[:2], ToolCalled("t1", "draw", "x", {}), result, COMPLETED)
    assert client.messages[-1]["content"] == "No."
    assert client.messages[-1]["metadata"] == {"status": "error", "chart": chart, "artifactIds": ["p1"]}


said = st.sampled_from(["Numbers", " first.", "\n", " ", "", "合同", "👋"])


@st.composite
def logs(draw: st.DrawFn) -> list[TurnEvent]:
    """Turns with tools that may ask, sources, restarts and messages that steer."""
    bodies: list[EventBody] = [TurnStart("c1", "m1", "m2", "scripted")]
    for iteration in range(1, draw(st.integers(1, 3)) + 1):
        bodies.append(IterationStart(iteration))
        for _ in range(draw(st.integers(0, 2))):
            bodies += draw(_words())
            if draw(st.booleans()):
                bodies.append(TurnResumed(2))
            bodies.append(IterationRestart(iteration, 2))
        bodies += draw(_words())
        bodies.append(UsageReported(3, 1, model=draw(st.sampled_from([None, "scripted"]))))
        calls = [f"t{iteration}.{number}" for number in range(draw(st.integers(0, 3)))]
        bodies += [ToolCalled(it, "search", "docs", {"n": 1}, model_name="docs__search") for it in calls]
        for call in calls:
            bodies += draw(_execution(call))
        if draw(st.booleans()):
            bodies.append(UserMessage(f"steer{iteration}", draw(said)))
    return turn(*bodies, Text("The end."), draw(st.sampled_from([COMPLETED, CANCELLED, TIMED_OUT])))


@st.composite
def _words(draw: st.DrawFn) -> list[EventBody]:
    return [
        draw(st.sampled_from([Text, Thought]))(draw(said)) if draw(st.integers(0, 5)) else Notice("X", "away")
        for _ in range(draw(st.integers(0, 5)))
    ]


@st.composite
def _execution(draw: st.DrawFn, call: str) -> list[EventBody]:
    request = f"q{call}"
    steps: list[list[EventBody]] = [
        [asking(request, call=call), ApprovalResponse(request, ApprovalAction.ALLOW)],
        [
            asking(f"{request}r", ApprovalKind.CLIENT_TOOL, call),
            ApprovalResponse(f"{request}r", ApprovalAction.RESULT),
        ],
        [ToolProgress(call, 0.5)],
        [Retrieval("law", (RetrievalHit("a.pdf", "§", 0.5, chunk_id="1"),), call)],
        [TurnResumed(3)],
    ]
    taken = [step for step in steps if draw(st.booleans())]
    result = ToolResultStored(call, "search", draw(st.sampled_from(["ok", "denied"])), draw(said))
    return [body for step in taken for body in step] + [result]


@patient
@given(logs())
def test_stream_builds_the_messages_of_the_history(events: list[TurnEvent]):
    client = Client()
    client.read(told(events))
    assert client.messages == history(events)


@patient
@given(logs())
def test_reader_who_joins_at_any_event_has_the_same_messages(events: list[TurnEvent]):
    for seen in range(len(events)):
        client = Client()
        client.read(told(events[:seen]) if seen else b"")
        assert client.messages == (history(events[:seen]) if seen else [])
        client.read(told(events, after=seen))
        assert client.messages == history(events)


@patient
@given(logs())
def test_chunk_becomes_the_frames_of_its_events(events: list[TurnEvent]):
    chunk = LogChunk(CONTEXT.turn_id, 1, len(events), encode_chunk(events))
    assert started().encode_chunk(chunk) == told(events)
