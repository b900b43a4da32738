"""A turn as a chat completion, read with OpenAI's own package."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.protocols.recorded import AT, BEGINNING, COMPLETED, RECORDED, TIMED_OUT, patient, replies, turn
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.errors import GenerationTimeout
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    EventBody,
    IterationRestart,
    IterationStart,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.mcp import CLIENT
from threadkeep.handling.stream import StreamEnd
from threadkeep.protocols.openai.completions_encode import CompletionEncoder, CompletionHead, WholeCompletion
from threadkeep.sse import EventReader

START = TurnStart("c1", "m1", "m2", "scripted")
ASKED = ApprovalRequest("r1", ApprovalKind.TOOL, "May I?", AT, tool_call_id="t0")
CALLED = ToolCalled("t1", "locate", CLIENT, {"near": "合同"}, model_name="locate")
WAITING = ApprovalRequest("r2", ApprovalKind.CLIENT_TOOL, "Waiting.", AT, tool_call_id="t1")


def head(after: int = 0) -> CompletionHead:
    return CompletionHead("chatcmpl-1", AT // 1000, "Advisor", after)


def frames(events: list[TurnEvent], end: StreamEnd = StreamEnd.OVER, after: int = 0) -> list[bytes]:
    """The data of all frames."""
    encoder = CompletionEncoder(head(after), with_usage=True)
    raw = b"".join(map(encoder.encode, events)) + encoder.end(end)
    return [it.data for it in EventReader().feed(raw)]


def streamed(events: list[TurnEvent], end: StreamEnd = StreamEnd.OVER, after: int = 0) -> Any:
    """What the package's stream helper makes of the chunks."""
    *chunks, done = frames(events, end, after)
    assert done == b"[DONE]"
    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate_json(chunk))
    return state.get_final_completion().to_dict()


def whole(events: list[TurnEvent], after: int = 0) -> Any:
    """The completion as one response."""
    made = WholeCompletion(head(after))
    made.add(events)
    return ChatCompletion.model_validate_json(msgspec.json.encode(made.completion())).to_dict()


def said(completion: Any) -> tuple[Any, ...]:
    """What a client reads of a completion."""
    (choice,) = completion["choices"]
    message = choice["message"]
    calls = [(it["id"], it["function"]["arguments"]) for it in message.get("tool_calls") or ()]
    thoughts = message.get("reasoning_content") or ""
    tokens = completion["usage"]["total_tokens"]
    return message["content"] or "", thoughts, calls, choice["finish_reason"], tokens


def test_recorded_turn():
    expected: tuple[Any, ...] = ('Looking …\n"now"\r\n\n\n你好 👋', "Let me\nlook.", [], "stop", 46)
    assert said(whole(RECORDED)) == said(streamed(RECORDED)) == expected
    assert whole(RECORDED)["created"] == AT // 1000


@patient
@given(replies)
def test_stream_adds_up_to_the_whole(events: list[TurnEvent]):
    ended = [*events, TurnEvent(events[0].turn_id, len(events) + 1, AT, COMPLETED)]
    assert said(streamed(ended)) == said(whole(ended))


def test_turn_that_waits_tells_what_for():
    asks: list[EventBody] = [START, Text("Hm."), ToolCalled("t0", "send", "mail", {}), ASKED, CALLED, WAITING]
    events = turn(*asks)
    expected: tuple[Any, ...] = ("Hm.\n\nMay I?", "", [("t1", '{"near":"合同"}')], "tool_calls", 0)
    assert said(streamed(events, StreamEnd.PAUSED)) == said(whole(events)) == expected
    denied = [ApprovalResponse("r1", ApprovalAction.DENY), ToolResultStored("t0", "send", "denied")]
    events = turn(*asks, *denied)
    assert said(whole(events)) == ("Hm.", "", expected[2], "tool_calls", 0)


def test_question_after_a_blank_text_reads_the_same_whole_and_streamed():
    events = turn(START, Text(" "), ToolCalled("t0", "send", "mail", {}), ASKED)
    assert said(whole(events)) == said(streamed(events, StreamEnd.PAUSED))


def test_next_completion_of_a_turn_has_only_what_follows():
    first: list[EventBody] = [START, IterationStart(1), Text("One."), UsageReported(5, 1), CALLED, WAITING]
    answered = ApprovalResponse("r2", ApprovalAction.RESULT)
    events = turn(*first, answered, IterationStart(2), Text("Two."), UsageReported(6, 2), COMPLETED)
    expected: tuple[Any, ...] = ("Two.", "", [], "stop", 8)
    assert said(streamed(events, after=6)) == said(whole(events, after=6)) == expected


def test_repeated_model_call_is_not_in_the_whole():
    events = turn(START, IterationStart(1), Text("Wron"), IterationRestart(1), Text("Right."), COMPLETED)
    assert said(whole(events))[0] == "Right."
    assert said(streamed(events))[0] == "Wron\n\nRight."  # what was sent stays sent


def test_failure_ends_the_stream_with_its_error():
    *_, last = frames(turn(*BEGINNING, TIMED_OUT))
    error = msgspec.json.decode(last)["error"]
    assert (error["type"], error["code"]) == ("server_error", "generation_timeout")
    with pytest.raises(GenerationTimeout):
        whole(turn(*BEGINNING, TIMED_OUT))
