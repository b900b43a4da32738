"""Recorded calls: which result a repeated call takes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.making import NOW
from threadkeep.domain.ids import MessageId, TurnId
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.recorded_calls import RecordedCall, RecordedCalls, call_key, in_both
from threadkeep.ports.gateway import ImageBlock, ToolResultBlock, ToolUse

TURN, MESSAGE = TurnId("01"), MessageId("02")


def recorded(id_: str, name: str, arguments: dict[str, Any], *images: ImageBlock) -> RecordedCall:
    call = ToolCall(TURN, id_, MESSAGE, name, "web", arguments, ToolCallStatus.OK, NOW)
    return RecordedCall(call, name, arguments, (ToolResultBlock(id_, f"result {id_}", False), *images))


def taken(calls: RecordedCalls, id_: str, name: str, arguments: dict[str, Any]) -> str | None:
    found = calls.take(ToolUse(id_, name, arguments))
    assert found is None or found.reads[0].tool_use_id == id_
    return found.reads[0].content if found else None


def test_same_calls_take_their_results_in_order_and_no_more():
    calls = RecordedCalls(
        [
            recorded("1", "search", {"q": "a"}),
            recorded("2", "search", {"q": "b"}),
            recorded("3", "search", {"q": "a"}),
        ]
    )
    assert taken(calls, "x", "search", {"q": "a"}) == "result 1"
    assert taken(calls, "y", "search", {"q": "a"}) == "result 3"
    assert taken(calls, "z", "search", {"q": "b"}) == "result 2"
    assert taken(calls, "w", "search", {"q": "a"}) is None


def test_call_of_another_tool_or_with_other_arguments_takes_nothing():
    calls = RecordedCalls([recorded("1", "search", {"q": "a", "top": 1})])
    for name, arguments in (
        ("find", {"q": "a", "top": 1}),
        ("search", {"q": "a"}),
        ("search", {"q": "a", "top": 2}),
        ("search", {"q": "a", "top": "1"}),
        ("search", {"q": "a", "top": True}),
        ("search", {}),
    ):
        assert taken(calls, "x", name, arguments) is None
    assert taken(calls, "x", "search", {"top": 1.0, "q": "a"}) == "result 1"


def test_images_of_a_result_belong_to_the_new_call():
    calls = RecordedCalls([recorded("1", "draw", {}, ImageBlock("c", "a.png", 9, "1"))])
    found = calls.take(ToolUse("x", "draw", {}))
    assert found and found.reads[1:] == (ImageBlock("c", "a.png", 9, "x"),)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_order_of_names_does_not_matter(arguments: dict[str, Any]):
    assert call_key("t", arguments) == call_key("t", dict(reversed(arguments.items())))


@pytest.mark.parametrize("other", [{"a": [1, 2]}, {"a": [2, 1, 3]}, {"a": {"0": 1}}])
def test_different_values_have_different_keys(other: dict[str, Any]):
    assert call_key("t", {"a": [1, 2, 3]}) != call_key("t", other)


def test_calls_of_both_runs_are_matched_one_by_one():
    a, b = call_key("t", {"a": 1}), call_key("t", {"b": 1})
    assert in_both([a, b, a], [a, a]) == [True, False, True]
    assert in_both([a, a], [b, a]) == [True, False]
