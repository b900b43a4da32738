"""How a turn ends: exactly one end, and nothing is left open before it."""

import pytest

from tests.context.histories import replied as replied_message
from tests.engine.test_loop import TURN
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationStart,
    Terminal,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.message import MessageStatus, Usage
from threadkeep.engine.ending import (
    ABANDONED,
    INTERNAL_ERROR,
    PROCESS_ENDED,
    completed,
    cut_off,
    failed,
    last_events,
    stopped,
)
from threadkeep.engine.fold import Folding
from threadkeep.engine.stop import StopReason
from threadkeep.ports.gateway import GatewayError

CALLS = [ToolCalled("1", "add", "math", {}), ToolCalled("2", "sub", "math", {})]
COMPLETED = Done("COMPLETED", TURN.assistant_message_id, Usage(0, 0), "end_turn")


def test_turn_whose_model_has_spoken_is_completed():
    assert completed(TURN, stop_reason="end_turn", has_spoken=True) == COMPLETED


@pytest.mark.parametrize(
    ("stop_reason", "says"), [("end_turn", "empty reply"), ("max_iterations", "limit of tool rounds")]
)
def test_turn_without_a_word_has_failed_and_can_be_retried(stop_reason: str, says: str):
    end = completed(TURN, stop_reason=stop_reason, has_spoken=False)
    assert isinstance(end, Failed)
    assert (end.code, end.retryable) == ("AGENTX_ERROR", True)
    assert says in end.message


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("abort", Done("CANCELLED", TURN.assistant_message_id, Usage(0, 0), "aborted")),
        ("timeout", Failed("GENERATION_TIMEOUT", "The turn took longer than 2.5 s.", retryable=True)),
        ("interrupt", Failed("INTERRUPTED", "The server stopped during this turn.", retryable=True)),
    ],
)
def test_stopped_turn_says_by_what(reason: StopReason, end: Terminal):
    assert stopped(TURN, reason, timeout_s=2.5) == end


@pytest.mark.parametrize("retryable", [True, False])
def test_provider_decides_whether_its_error_can_be_retried(retryable: bool):
    error = GatewayError("No.", retryable=retryable)
    assert failed(error) == Failed("AGENTX_ERROR", "No.", retryable)


def test_error_before_the_model_was_asked_can_be_retried():
    error = StorageUnavailable("Later.")
    assert failed(error) == Failed(error.code, "Later.", retryable=False)
    assert failed(error, is_prepared=False) == Failed(error.code, "Later.", retryable=True)


def test_our_own_error_tells_nothing_of_itself():
    assert failed(ZeroDivisionError("secret")) == INTERNAL_ERROR
    assert "secret" not in INTERNAL_ERROR.message


def test_open_calls_get_their_result_and_the_open_model_call_its_usage_before_the_end():
    events = last_events(
        COMPLETED, open_calls=CALLS, why="It ended.", reported=Usage(1, 2), unreported=Usage(3, 4, True)
    )
    assert list(events) == [
        ToolResultStored("1", "add", "interrupted", error="It ended."),
        ToolResultStored("2", "sub", "interrupted", error="It ended."),
        UsageReported(3, 4, estimated=True),
        Done("COMPLETED", TURN.assistant_message_id, Usage(4, 6, estimated=True), "end_turn"),
    ]


@pytest.mark.parametrize("end", [COMPLETED, INTERNAL_ERROR])
def test_turn_that_left_nothing_open_just_ends(end: Terminal):
    assert list(last_events(end, open_calls=(), why="", reported=Usage(0, 0), unreported=None)) == [end]


def cut_off_after(*bodies: EventBody) -> list[EventBody]:
    """The last events of a turn whose process died after these; its first request had 100 tokens."""
    folding = Folding()
    for seq, body in enumerate([TurnStart.of(TURN), *bodies], 1):
        folding.add(TurnEvent(TURN.id, seq, 0, body))
    reply = folding.message(replied_message(2, "", MessageStatus.STREAMING))
    last = cut_off(
        ABANDONED, reply, folding.open_calls, open_iteration=folding.open_iteration, request_tokens=100
    )
    return list(last)


ITERATION = (
    IterationStart(1),
    Text("I look. "),
    ToolCalled("1", "rows", "shop", {}),
    UsageReported(90, 7),
    ToolResultStored("1", "rows", "ok", "x" * 400),
)


def test_model_call_that_a_crash_cut_off_is_counted_whichever_it_was():
    cut = cut_off_after(IterationStart(1), Text("half" * 2))[0]
    assert cut == UsageReported(100, 2, estimated=True, model="scripted")
    usage, end = cut_off_after(*ITERATION, IterationStart(2), Text("half" * 3))
    assert isinstance(usage, UsageReported)
    assert usage.input_tokens > 200  # with what the first call said and its tool returned
    assert (usage.output_tokens, usage.estimated) == (3, True)
    assert end == ABANDONED


def test_crash_between_two_model_calls_adds_no_usage():
    assert cut_off_after(*ITERATION) == [ABANDONED]
    assert cut_off_after(*ITERATION[:-1]) == [
        ToolResultStored("1", "rows", "interrupted", error=PROCESS_ENDED),
        ABANDONED,
    ]
