"""A turn is narrated the same for every protocol, and wherever its reader, or its server, starts again."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.ag_ui.client import Client as AgUiClient
from tests.protocols.ai_sdk.client import Client as AiSdkClient
from tests.protocols.recorded import CONTEXT, REPLY, logs, patient, told
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    IterationRestart,
    IterationStart,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
)
from threadkeep.domain.parts import TextPart, ThoughtPart
from threadkeep.engine.fold import fold
from threadkeep.handling.stream import StreamEnd
from threadkeep.protocols.ag_ui.encode import Run, RunEncoder
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.frames import Version
from threadkeep.protocols.ai_sdk.parts import Reader
from threadkeep.protocols.dialect import Dialect, Position
from threadkeep.protocols.dialects import DIALECTS
from threadkeep.protocols.mcp.turns import news
from threadkeep.protocols.narrator import (
    Asked,
    Called,
    Decided,
    JoiningNarrator,
    Kind,
    Narration,
    Narrator,
    PartEnd,
    PartStart,
    Returned,
    StepBegan,
    StepEnded,
)
from threadkeep.protocols.openai.completions_encode import CompletionEncoder, CompletionHead, WholeCompletion
from threadkeep.protocols.openai.encode import NOTHING_SEEN, ResponseEncoder, ResponseHead

Events = list[TurnEvent]


def narrator() -> Narrator[Narration | Text | Thought]:
    return Narrator(
        lambda narrated: (narrated,), text=lambda it: (Text(it),), thought=lambda it: (Thought(it),)
    )


def narrated(events: Events) -> list[Narration | Text | Thought]:
    """All that is said of a turn, which may be cut off."""
    telling = narrator()
    return [*(it for event in events for it in telling.narrate(event.body)), *telling.pause()]


def is_waiting(events: Events, seen: int) -> bool:
    """Whether a turn may wait for its user after an event."""
    return isinstance(events[seen - 1].body, ApprovalRequest)


@patient
@given(logs(), st.data())
def test_what_begins_ends_once_and_grows_only_in_between(events: Events, data: st.DataObject):
    growing: Kind | None = None
    pieces: list[str] = []
    for it in narrated(events[: data.draw(st.integers(0, len(events)))]):
        match it:
            case PartStart(kind):
                assert growing is None
                growing, pieces = kind, []
            case Text(text) | Thought(text):
                assert growing == it.type
                pieces.append(text)
            case PartEnd(kind, text):
                assert (growing, "".join(pieces)) == (kind, text)
                growing = None
            case _:
                pass
    assert growing is None


@patient
@given(logs())
def test_reply_has_the_parts_that_were_narrated(events: Events):
    parts = fold(REPLY, events).parts
    assert [it.text for it in narrated(events) if isinstance(it, PartEnd)] == [
        it.text for it in parts if isinstance(it, TextPart | ThoughtPart)
    ]


@patient
@given(logs())
def test_text_of_the_reply_is_what_was_said_and_counts(events: Events):
    telling = JoiningNarrator[str](text=lambda text: (text,))
    pieces = [text for event in events for text in telling.narrate(event.body)]
    reply = fold(REPLY, events)
    assert telling.said("text") == reply.text
    assert (telling.usage, telling.end) == (reply.usage, events[-1].body)
    if not any(isinstance(it.body, IterationRestart) for it in events):
        assert "".join(pieces) == reply.text


@patient
@given(logs())
def test_call_is_asked_about_and_returns_once_after_it_was_made(events: Events):
    running: set[str] = set()
    made: list[str] = []
    for it in narrated(events):
        match it:
            case Called(event):
                running.add(event.tool_call_id)
                made.append(event.tool_call_id)
            case Asked(request, call) if request.tool_call_id is not None:
                assert call is not None and call.event.tool_call_id in running
            case Decided(response, request, call):
                assert request is not None and request.request_id == response.request_id
                assert call is None or response.arguments in (None, call.arguments)
            case Returned(result, call):
                assert call is not None and call.event.tool_call_id == result.tool_call_id
                running.remove(result.tool_call_id)
            case _:
                pass
    assert not running
    assert made == [it.body.tool_call_id for it in events if isinstance(it.body, ToolCalled)]


@patient
@given(logs())
def test_steps_end_once_and_open_ones_have_names_of_their_own(events: Events):
    open_: dict[str, str] = {}
    begun: list[str] = []
    for it in narrated(events):
        match it:
            case StepBegan(event, label):
                assert label not in open_.values() and label.startswith(event.name)
                open_[event.step_id] = label
                begun.append(event.step_id)
            case StepEnded(event, label):
                assert open_.pop(event.step_id) == label
                assert event.status != "running"
            case _:
                pass
    assert not open_
    assert begun == list(dict.fromkeys(it.body.step_id for it in events if isinstance(it.body, StepChanged)))


@patient
@given(logs())
def test_requests_are_open_until_they_are_answered(events: Events):
    telling = narrator()
    open_: list[str] = []
    for event in events:
        telling.narrate(event.body)
        if isinstance(event.body, ApprovalRequest):
            open_.append(event.body.request_id)
        elif isinstance(event.body, ApprovalResponse):
            open_.remove(event.body.request_id)
        assert [it.request.request_id for it in telling.open_requests] == open_


@patient
@given(logs())
def test_client_sees_a_call_that_it_runs_only_once_the_user_has_allowed_it(events: Events):
    allowed: set[str] = set()
    for it in narrated(events):
        match it:
            case Decided(response, _, call) if call and response.action in ("allow", "edit"):
                allowed.add(call.event.tool_call_id)
            case Asked(request, call) if call and request.kind == "client_tool":
                assert call.is_held == call.event.asks
                assert not call.is_held or call.event.tool_call_id in allowed
            case Returned(ToolResultStored(status=status), call) if call and call.is_held:
                assert status == "denied"
            case _:
                pass


# Every protocol, from any event on: (what a reader has who read all, and one who came back after an event)

Restarted = tuple[object, object]


def dialect(name: Dialect, events: Events, seen: int) -> Restarted:
    """The rest follows, byte by byte, after each frame of the last event that a reader has."""
    frames = [*map(name.frames(CONTEXT), events)]
    before, last = b"".join(it for event in frames[: seen - 1] for it in event), frames[seen - 1]
    continued = [
        before + b"".join(last[:had]) + told(name, events, Position(seen - 1, had))
        for had in range(len(last) + 1)
    ]
    return [told(name, events)] * len(continued), continued


def ag_ui(events: Events, seen: int) -> Restarted:
    """A client may join within a text, which then begins again under its id."""

    def read(client: AgUiClient, events: Events, after: int = 0) -> list[dict[str, Any]]:
        run = Run(thread_id="thread", run_id="run", is_1_0=True)
        encoder = RunEncoder(run, CONTEXT.turn_id, CONTEXT.message_id, after)
        shown = b"".join(map(encoder.encode, events))
        client.read(shown if events[-1].is_terminal else shown + encoder.end(StreamEnd.PAUSED))
        return client.messages

    back = AgUiClient()
    read(back, events[:seen])
    return read(AgUiClient(), events), read(back, events, seen) if seen < len(events) else back.messages


def ai_sdk(version: Version, events: Events, seen: int) -> Restarted:
    """A client that answers continues its message; any other is given the whole turn."""

    def read(client: AiSdkClient, events: Events, how: StreamEnd, after: int = 0) -> dict[str, Any]:
        stream = UIMessageStream(CONTEXT, Reader(version, "http://here"), after)
        return client.read(b"".join(map(stream.encode, events)) + stream.end(how))

    back = AiSdkClient(version)
    if is_waiting(events, seen):
        read(back, events[:seen], StreamEnd.PAUSED)
    after = seen if is_waiting(events, seen) else 0
    whole = read(AiSdkClient(version), events, StreamEnd.OVER)
    return whole, read(back, events, StreamEnd.OVER, after)


def responses(events: Events, seen: int) -> Restarted:
    """The rest follows, byte by byte, in each response of the turn."""

    def read(part: int, events: Events, after: int = NOTHING_SEEN) -> bytes:
        head = ResponseHead(turn_id=CONTEXT.turn_id, part=part, created_at=0, model="a", metadata={})
        return b"".join(map(ResponseEncoder(head, after).encode, events))

    before = [read(part, events[:seen]) for part in (1, 2)]
    rest = [read(part, events, it.count(b"\n\n") - 1) for part, it in enumerate(before, 1)]
    return [read(part, events) for part in (1, 2)], [a + b for a, b in zip(before, rest, strict=True)]


def chat_completions(events: Events, seen: int) -> Restarted:
    """A completion ends where the turn waits, another has the rest; read whole, each is what counts."""
    after = seen if is_waiting(events, seen) else 0
    parts = [(events[after:], StreamEnd.OVER), *([(events[:after], StreamEnd.PAUSED)] if after else [])]
    whole = [read_whole(events, after), *(read_whole(it) for it, _ in parts[1:])]
    streamed = [client_of_completions(completion(counting(it), how)) for it, how in parts]
    return (completion(*parts[0]), whole), (completion(events, StreamEnd.OVER, after), streamed)


def completion(events: Events, how: StreamEnd, after: int = 0) -> bytes:
    """A streamed completion."""
    encoder = CompletionEncoder(CompletionHead("chatcmpl-1", 0, "Advisor", after), with_usage=True)
    return b"".join(map(encoder.encode, events)) + encoder.end(how)


def client_of_completions(stream: bytes) -> dict[str, Any]:
    """What a client makes of a stream."""
    data = [it.removeprefix(b"data: ") for it in stream.split(b"\n\n")]
    *chunks, last = [json.loads(it) for it in data if it not in (b"", b"[DONE]")]
    if "error" in last:
        return {"error": last["error"]["message"]}
    choices = [choice for it in chunks for choice in it["choices"]]
    deltas = [it["delta"] for it in choices]
    return {
        "text": "".join(it.get("content", "") for it in deltas),
        "thoughts": "".join(it.get("reasoning_content", "") for it in deltas),
        "calls": [call["id"] for it in deltas for call in it.get("tool_calls", ())],
        "reason": choices[-1]["finish_reason"],
        "usage": last["usage"],
    }


def read_whole(events: Events, after: int = 0) -> dict[str, Any]:
    """The same of a completion that isn't streamed."""
    whole = WholeCompletion(CompletionHead("chatcmpl-1", 0, "Advisor", after))
    whole.add(events)
    try:
        read = msgspec.to_builtins(whole.completion())
    except ThreadkeepError as error:
        return {"error": error.message}
    (choice,) = read["choices"]
    return {
        "text": choice["message"]["content"] or "",
        "thoughts": choice["message"].get("reasoning_content", ""),
        "calls": [it["id"] for it in choice["message"].get("tool_calls", ())],
        "reason": choice["finish_reason"],
        "usage": read["usage"],
    }


def counting(events: Events) -> Events:
    """A turn without what its repeated model calls said, which a stream can't take back."""
    kept, call = Events(), 0
    for event in events:
        if isinstance(event.body, IterationStart):
            call = len(kept)
        elif isinstance(event.body, IterationRestart):
            kept[call:] = [it for it in kept[call:] if not isinstance(it.body, Text | Thought)]
        kept.append(event)
    return kept


def mcp(events: Events, seen: int) -> Restarted:
    """A client that asks again after an event is told what follows."""

    def told_after(seen: int, events: Events) -> str:
        telling = news()
        narrated = [(event.seq, "".join(telling.narrate(event.body))) for event in events]
        return "".join(it for seq, it in narrated if seq > seen)

    return told_after(0, events), told_after(0, events[:seen]) + told_after(seen, events)


PROTOCOLS: dict[str, Callable[[Events, int], Restarted]] = {
    **{name: lambda events, seen, it=it: dialect(it, events, seen) for name, it in DIALECTS.items()},
    "ag_ui": ag_ui,
    "ai_sdk 5": lambda events, seen: ai_sdk(5, events, seen),
    "ai_sdk 6": lambda events, seen: ai_sdk(6, events, seen),
    "ai_sdk 7": lambda events, seen: ai_sdk(7, events, seen),
    "responses": responses,
    "chat completions": chat_completions,
    "mcp": mcp,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@patient
@given(events=logs(), data=st.data())
def test_reader_who_comes_back_after_any_event_misses_nothing(
    protocol: str, events: Events, data: st.DataObject
):
    whole, continued = PROTOCOLS[protocol](events, data.draw(st.integers(1, len(events))))
    assert continued == whole
