"""What is recorded of a program's steps, from its log and journal and from the parts of its reply."""

from msgspec import Raw

from tests.protocols.recorded import AT
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.events import ApprovalRequest, EventBody, StepChanged, TurnEvent
from threadkeep.domain.ids import MessageId, TurnId
from threadkeep.domain.parts import Part, QuestionPart, StepPart, TextPart, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.journal import CodeStarted, JournalEntry, ReplayDiverged, StepBegun, StepEnded
from threadkeep.engine.recorded_steps import RecordedSteps, StepRecorder, steps_of_parts
from threadkeep.wire.programs import Effect, ProgramError


def recorded(*entries: EventBody | JournalEntry, is_over: bool = True) -> RecordedSteps:
    """The steps of a turn in which something happens every 10 ms."""
    recorder = StepRecorder(lambda subject: f"request about {subject}")
    for number, entry in enumerate(entries):
        is_entry = isinstance(entry, CodeStarted | ReplayDiverged | StepBegun | StepEnded)
        recorder.add(entry if is_entry else TurnEvent("t", number + 1, AT + 10 * number, entry))  # pyright: ignore[reportArgumentType]
    return recorder.steps(is_over=is_over)


def shown(id_: str, name: str, **more: str) -> StepChanged:
    return StepChanged(id_, name, "step", "running", **more)  # pyright: ignore[reportArgumentType]


def begun(id_: str, name: str, effect: Effect = "write", attempt: int = 1) -> StepBegun:
    return StepBegun(f"/{name}/hash/{id_}", id_, name, "step", effect, attempt)


def ended(id_: str, name: str, value: bytes = b'"done"') -> StepEnded:
    return StepEnded(f"/{name}/hash/{id_}", "ok", AT, value=Raw(value), duration_ms=7, size=len(value))


def test_step_is_what_was_shown_and_what_is_recorded_of_it():
    found = recorded(
        CodeStarted("orders", 3),
        shown("1", "refund", title="Refunded", agent="billing", parent_id="9"),
        begun("1", "refund"),
        ended("1", "refund"),
    )
    assert found.code == CodeStarted("orders", 3)
    (step,) = found.steps
    assert (step.step_id, step.name, step.kind, step.title) == ("1", "refund", "step", "Refunded")
    assert (step.agent, step.parent_id, step.effect, step.attempt) == ("billing", "9", "write", 1)
    assert (step.status, step.started_at, step.duration_ms, step.size) == ("ok", AT + 10, 7, 6)
    assert (step.value, step.is_hidden) == (Raw(b'"done"'), False)


def test_step_that_nobody_was_shown_is_hidden():
    (step,) = recorded(begun("1", "look"), ended("1", "look")).steps
    assert step.is_hidden


def test_step_that_runs_again_stays_in_its_place():
    first, second = recorded(
        shown("1", "find"), begun("1", "find", "read"),
        shown("2", "look"), begun("2", "look", "read"), ended("2", "look"),
        begun("1", "find", "read", 2), ended("1", "find"),
    ).steps  # fmt: skip
    assert (first.name, first.attempt, first.status, first.started_at) == ("find", 2, "ok", AT)
    assert (second.name, second.attempt) == ("look", 1)


def test_step_without_an_end_runs_and_when_the_turn_is_over_only_a_write_is_unknown():
    entries = (begun("1", "refund"), begun("2", "find", "read"), StepBegun("k", "3", "model", "model"))
    assert [it.status for it in recorded(*entries, is_over=False).steps] == ["running"] * 3
    assert [it.status for it in recorded(*entries).steps] == ["unknown", "cancelled", "cancelled"]


def test_models_tools_and_questions_are_steps_and_what_is_taken_or_saved_is_not():
    found = recorded(
        StepBegun("/steering/h/1", "1", "steering", "take", "read"),
        StepBegun("/model/h/1", "2", "model", "model", "idempotent"),
        StepBegun("/mail/h/1", "3", "mail", "tool"),
        StepBegun("/save/h/1", "4", "save", "save"),
        StepBegun("/ask/h/1", "5", "ask", "question", "read"),
        ApprovalRequest("request about ask//ask/h/1", ApprovalKind.QUESTION, "Refund it?", AT),
    )
    assert [(it.kind, it.name, it.title) for it in found.steps] == [
        ("model", "model", None),
        ("tool", "mail", None),
        ("question", "ask", "Refund it?"),
    ]


def test_what_the_program_does_not_time_itself_lasts_from_its_begin_to_its_end():
    asking = StepBegun("/ask/h/1", "1", "ask", "question", "read")
    (step,) = recorded(shown("9", "look"), asking, StepEnded("/ask/h/1", "ok", AT + 4000)).steps
    assert (step.started_at, step.duration_ms) == (AT, 4000)


def test_failure_has_its_error_and_a_turn_that_diverged_what_was_asked_instead():
    error = ProgramError("shop.Sold", "It is gone.")
    diverged = ReplayDiverged("find", "refund")
    found = recorded(begun("1", "find"), StepEnded("/find/hash/1", "error", AT, error=error), diverged)
    assert (found.steps[0].error, found.diverged) == (error, diverged)


def call(status: ToolCallStatus) -> ToolCallPart:
    made = ToolCall(TurnId("t"), status.value, MessageId("m"), "mail", "post", {}, status, AT, duration_ms=3)
    return ToolCallPart(call=made)


def test_parts_say_what_was_shown_once_the_log_is_gone():
    parts: list[Part] = [
        TextPart(text="Wait."),
        StepPart(step_id="1", name="find", status="unknown", at=AT, title="Found", duration_ms=4, agent="b"),
        *map(call, ToolCallStatus),
        QuestionPart(
            request_id="q",
            message="Sure?",
            at=AT,
            expires_at=AT,
            decision=Decision(action=ApprovalAction.DENY, at=AT + 5),
        ),
        StepPart(step_id="2", name="look", status="ok", at=AT, superseded=True),
    ]
    found = steps_of_parts(parts)
    assert found.code is None
    first, *calls, last = found.steps
    assert (first.number, first.kind, first.name, first.title, first.status) == (
        1,
        "agent",
        "find",
        "Found",
        "unknown",
    )
    assert (first.duration_ms, first.agent, first.effect, first.attempt, first.size) == (
        4,
        "b",
        None,
        None,
        None,
    )
    assert {it.step_id: it.status for it in calls} == {
        "running": "running", "ok": "ok", "error": "error", "timeout": "error", "denied": "error",
        "interrupted": "cancelled", "unknown": "unknown",
    }  # fmt: skip
    assert (last.kind, last.name, last.title, last.status, last.duration_ms) == (
        "question",
        "ask",
        "Sure?",
        "ok",
        5,
    )
