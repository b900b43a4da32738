"""Events to message: whoever folds the same events gets the same message, and a part of them a part of it."""

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import programs
from threadkeep.domain.errors import IllegalTransition
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    StepChanged,
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
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.parts import (
    NoticePart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ThoughtStep,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.retrieval import Citation, RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.fold import Folding, fold
from threadkeep.log.format import decode_chunk, encode_chunk

START = TurnStart("c", "q", "a", "scripted")
DONE = Done("COMPLETED", "a", Usage(1, 2), "end_turn")
REPLY = Message(
    MessageId("a"), ConversationId("c"), 2, TurnId("t"), MessageRole.ASSISTANT, (), MessageStatus.PENDING, 0
)


def numbered(*bodies: EventBody, every_ms: int = 10) -> list[TurnEvent]:
    return [TurnEvent("t", seq, seq * every_ms, body) for seq, body in enumerate(bodies, 1)]


def folded(*bodies: EventBody) -> Message:
    return fold(REPLY, numbered(*bodies))


def test_content_is_all_text_with_a_blank_line_between_two_calls_of_the_model():
    message = folded(START, Text("One"), Text(" two"), IterationStart(2), Text("three"), DONE)
    assert message.content == "One two\n\nthree"
    assert (message.status, message.model, message.completed_at) == (MessageStatus.COMPLETED, "scripted", 60)


def test_thoughts_become_steps_with_the_time_they_took():
    message = folded(
        START, Thought("Hm"), Thought("…"), Text("So"), Thought("Again"), UsageReported(1, 1), DONE
    )
    assert message.thought_process == (
        ThoughtStep("thought", "Thought", "Hm…", 20, 20),
        ThoughtStep("thought", "Thought", "Again", 50, 10),
    )
    assert message.content == "So"


def test_tool_calls_are_kept_with_their_results_and_steps():
    message = folded(
        START,
        Thought("?"),
        ToolCalled("1", "add", "math", {"a": 1}),
        ToolCalled("2", "sub", "math", {}),
        ToolProgress("1", 0.5),
        ToolResultStored("2", "sub", "error", error="No.", duration_ms=3),
        ToolResultStored(
            "1", "add", "ok", {"sum": 1}, duration_ms=7, chart_data=[1], artifact_ids=("p1", "p2")
        ),
        Text("1"),
        DONE,
    )
    assert message.tool_calls == (
        ToolCall(
            TurnId("t"), "1", MessageId("a"), "add", "math", {"a": 1}, ToolCallStatus.OK, 30,
            {"sum": 1}, None, [1], 7, (PayloadId("p1"), PayloadId("p2")),
        ),
        ToolCall(
            TurnId("t"), "2", MessageId("a"), "sub", "math", {}, ToolCallStatus.ERROR, 40, None, "No.",
            None, 3,
        ),
    )  # fmt: skip
    assert message.thought_process == (
        ThoughtStep("thought", "Thought", "?", 20, 10),
        ThoughtStep("tool", "add", "", 30, 7, "1"),
        ThoughtStep("tool", "sub", "No.", 40, 3, "2"),
    )
    assert message.artifact_ids == ("p1", "p2")


def test_parts_stand_in_the_order_in_which_they_arrived_each_with_its_call_of_the_model():
    hit = RetrievalHit("law.pdf", "§1", 0.9)
    message = folded(
        START,
        Retrieval("q", (hit,)),
        IterationStart(1),
        Thought("Hm"),
        Text("First."),
        UsageReported(1, 1),
        ToolCalled("1", "add", "math", {}),
        Notice("SLOW", "Slow."),
        ToolResultStored("1", "add", "ok", 3, duration_ms=5),
        IterationStart(2),
        Text("Then"),
        Text("."),
        DONE,
    )
    (call,) = message.tool_calls
    assert message.parts == (
        RetrievalPart(query="q", hits=(hit,), at=20),
        ThoughtPart(text="Hm", started_at=40, duration_ms=10, iteration=1),
        TextPart(text="First.", iteration=1),
        ToolCallPart(call=call, iteration=1),
        NoticePart(code="SLOW", message="Slow.", at=80, iteration=1),
        TextPart(text="Then.", iteration=2),
    )
    assert message.content == "First.\n\nThen."


def test_hits_become_citations_that_are_numbered_over_the_whole_turn():
    memory = RetrievalHit("memory", "m" * 400, 0.5)
    page = RetrievalHit("law.pdf", "§1", 0.9, chunk_id="k", document_id="d", page=3)
    message = folded(START, Retrieval("q1", (memory,)), Retrieval("q2", (page, page)), Text("[1]"), DONE)
    assert message.citations == (
        Citation(1, "memory", "m" * 300, 0.5),
        Citation(2, "law.pdf", "§1", 0.9, file_name="law.pdf", document_id="d", page=3),
    )
    assert [(it.kind, it.title, it.detail) for it in message.thought_process] == [
        ("retrieval", "q1", "memory"),
        ("retrieval", "q2", "law.pdf"),
    ]


def test_usage_is_the_sum_of_all_calls_and_estimated_when_one_of_them_is():
    first = UsageReported(10, 1, cache_write_tokens=8)
    second = UsageReported(20, 2, estimated=True, cache_read_tokens=8, cache_write_tokens=9)
    message = folded(START, first, Text("."), second, DONE)
    spent = Usage(30, 3, estimated=True, cache_read_tokens=8, cache_write_tokens=17)
    assert (message.usage, message.token_count) == (spent, 3)
    assert folded(START, Text(".")).usage is None


def test_notice_is_a_step():
    message = folded(START, Notice("RATE_LIMITED", "Busy."), Text("."), DONE)
    assert message.thought_process == (ThoughtStep("notice", "RATE_LIMITED", "Busy.", 20, 0),)


@pytest.mark.parametrize(
    ("events", "status", "error"),
    [
        ([], MessageStatus.PENDING, None),
        ([START], MessageStatus.PENDING, None),
        ([START, IterationStart(1)], MessageStatus.STREAMING, None),
        ([START, Text("x")], MessageStatus.STREAMING, None),
        ([START, Text("x"), DONE], MessageStatus.COMPLETED, None),
        ([START, replace(DONE, status="CANCELLED")], MessageStatus.CANCELLED, None),
        ([START, Failed("X", "Why.", retryable=True)], MessageStatus.FAILED, Failure("X", "Why.", True)),
    ],
)
def test_state_follows_the_events(events: list[EventBody], status: MessageStatus, error: Failure | None):
    message = folded(*events)
    assert (message.status, message.error) == (status, error)
    assert (message.completed_at is not None) == (status not in {"PENDING", "STREAMING"})


def test_second_result_of_a_call_is_refused():
    result = ToolResultStored("1", "add", "ok", 1)
    with pytest.raises(IllegalTransition):
        folded(START, ToolCalled("1", "add", "", {}), result, result)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
hits = st.builds(RetrievalHit, texts, texts, st.floats(0, 1))
results = st.one_of(
    st.builds(ToolResultStored, st.just(""), st.just(""), st.just("ok"), texts),
    st.builds(
        ToolResultStored,
        st.just(""),
        st.just(""),
        st.sampled_from(["error", "timeout", "denied", "interrupted"]),
        error=texts,
    ),
)


@st.composite
def turns(draw: st.DrawFn) -> list[EventBody]:
    """A turn as the engine tells it: calls of the model with tools between them, and one end."""
    bodies: list[EventBody] = [START]
    call_id = 0
    for iteration in range(1, draw(st.integers(1, 3)) + 1):
        bodies.append(IterationStart(iteration))
        bodies += draw(
            st.lists(
                st.one_of(
                    st.builds(Text, texts),
                    st.builds(Thought, texts),
                    st.builds(Notice, texts, texts),
                    st.builds(Retrieval, texts, st.lists(hits, min_size=1, max_size=2).map(tuple)),
                ),
                max_size=6,
            )
        )
        bodies.append(draw(st.builds(UsageReported, st.integers(0, 99), st.integers(0, 99), st.booleans())))
        calls = [str(call_id + n) for n in range(draw(st.integers(0, 3)))]
        call_id += len(calls)
        bodies += [ToolCalled(it, f"tool{it}", "server", {"n": it}) for it in calls]
        for it in draw(st.permutations(calls)):
            bodies += draw(st.lists(st.builds(ToolProgress, st.just(it), st.floats(0, 1)), max_size=2))
            bodies.append(replace(draw(results), tool_call_id=it, tool_name=f"tool{it}"))
    ends: list[EventBody] = [replace(DONE, status="CANCELLED"), Failed("X", "Why.")]
    if not is_blank("".join(it.text for it in bodies if isinstance(it, Text))):
        ends.append(DONE)
    return [*bodies, draw(st.sampled_from(ends))]


@given(turns(), st.integers(0, 50))
def test_fold_of_any_turn(bodies: list[EventBody], every_ms: int):
    events = numbered(*bodies, every_ms=every_ms)
    whole = fold(REPLY, events)
    spoken = "".join(it.text for it in bodies if isinstance(it, Text))
    assert whole.text.replace("\n", "") == spoken.replace("\n", "")
    assert whole.status in {"COMPLETED", "CANCELLED", "FAILED"}
    assert all(step.duration_ms >= 0 for step in whole.thought_process)
    assert [call.status for call in whole.tool_calls].count(ToolCallStatus.RUNNING) == 0
    numbers = [it.index for it in whole.citations]
    assert numbers == sorted(set(numbers))
    assert fold(REPLY, decode_chunk(encode_chunk(events))) == whole  # as it is stored

    folding = Folding()
    for count, event in enumerate(events[:-1], 1):
        folding.add(event)
        part = folding.message(REPLY)
        assert part == fold(REPLY, events[:count])
        assert part.status is (MessageStatus.STREAMING if count > 1 else MessageStatus.PENDING)
        assert whole.text.startswith(part.text)
        assert whole.citations[: len(part.citations)] == part.citations
        assert [it.tool_call_id for it in part.tool_calls] == [
            it.tool_call_id for it in whole.tool_calls[: len(part.tool_calls)]
        ]
        assert part.completed_at is None


def step(id_: str, status: Literal["running", "ok", "unknown"] = "running") -> StepChanged:
    return StepChanged(
        id_, "find", "step", status, title="Found", duration_ms=None if status == "running" else 7
    )


def shown(message: Message) -> list[str]:
    """Texts, and steps as their numbers; what is superseded in brackets."""
    said = (
        it.text if isinstance(it, TextPart | UserTextPart) else getattr(it, "step_id", it.type)
        for it in message.parts
    )
    return [f"[{it}]" if part.superseded else it for it, part in zip(said, message.parts, strict=True)]


def test_step_of_a_program_is_one_part_from_its_begin_to_its_end():
    message = folded(START, step("1"), step("1", "ok"), Text("Here."), DONE)
    found = StepPart(step_id="1", name="find", title="Found", status="ok", at=20, duration_ms=7)
    assert message.parts[0] == found
    assert message.thought_process == (ThoughtStep("node", "Found", "", 20, 7),)


def test_step_without_an_end_is_unknown_once_the_turn_is_over():
    begun = folded(START, step("1"))
    assert [getattr(it, "status", "") for it in begun.parts] == ["running"]
    over = folded(START, step("1"), Failed("INTERRUPTED", "Gone."))
    assert over.thought_process == (ThoughtStep("node", "Found", "unknown", 20, 0),)


def test_step_stands_between_two_texts_of_the_program_and_after_a_text_that_another_step_says():
    program = IterationStart(1, "")
    between = folded(START, program, Text("One. "), step("1"), step("1", "ok"), Text("Two."), DONE)
    assert shown(between) == ["One. ", "1", "Two."]
    assert between.content == "One. Two."
    other = IterationStart(1, "1")
    within = folded(START, step("1"), other, Text("On"), step("2"), Text("e."), step("2", "ok"), DONE)
    assert shown(within) == ["1", "One.", "2"]


def test_text_of_a_program_goes_on_where_its_node_was_lost():
    message = folded(IterationStart(1, ""), Text("One, "), TurnResumed(1), Text("two."))
    assert [(it.text, it.iteration) for it in message.parts if isinstance(it, TextPart)] == [("One, two.", 1)]


def test_step_that_is_repeated_supersedes_what_it_said_and_nothing_else():
    message = folded(
        START,
        IterationStart(1, "1"),
        Text("Half"),
        step("2"),
        ToolCalled("c", "add", "agent", {}),
        ToolResultStored("c", "add", "ok", 3),
        UserMessage("m", "Hurry."),
        IterationStart(2, ""),
        Text("Mine."),
        IterationRestart(1, 2, "1"),
        step("2", "ok"),
        IterationStart(3, "1"),
        Text("Whole."),
        DONE,
    )
    assert shown(message) == ["[Half]", "2", "tool_call", "Hurry.", "Mine.", "Whole."]
    assert message.content == "Mine.\n\nWhole."


@given(programs())
def test_program_that_is_folded_in_two_goes_is_folded_the_same(events: list[TurnEvent]):
    folding = Folding()
    for event in events:
        folding.add(event)
        assert [*folding.parts] == [*folding.parts]
    assert folding.message(REPLY) == fold(REPLY, decode_chunk(encode_chunk(events)))
