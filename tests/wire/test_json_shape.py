"""A JSON text's depth and number of values, counted before it is decoded."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge, ThreadkeepError
from threadkeep.wire import json_shape
from threadkeep.wire.json_shape import MOST_NESTING, MOST_VALUES, JsonShape, check_shape

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{},:"\\ a字', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='[{,"\\', max_size=3), inner, max_size=4)
    ),
    max_leaves=30,
)


def inside(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else None


def depth(value: Any) -> int:
    inner = inside(value)
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def count(value: Any) -> int:
    """Values, an object's names not counted; an empty one counts what stands in it as one."""
    inner = inside(value)
    return 1 if inner is None else 1 + (sum(map(count, inner)) or 1)


def is_refused(text: bytes, error: type[ThreadkeepError], part: int, most_values: int = MOST_VALUES) -> bool:
    shape = JsonShape(most_values)
    try:
        for start in range(0, len(text), part):
            shape.add(text[start : start + part])
    except error:
        return True
    return False


@given(values, st.integers(1, 40))
def test_depth_and_values_are_counted_as_a_parser_would_in_whatever_parts(value: Any, part: int):
    text = json.dumps(value, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        for most in (depth(value), depth(value) - 1):
            patch.setattr(json_shape, "MOST_NESTING", most)
            assert is_refused(text, InvalidRequest, part) == (most < depth(value))
        patch.setattr(json_shape, "MOST_NESTING", 100)
        for most in (count(value), count(value) - 1):
            assert is_refused(text, PayloadTooLarge, part, most) == (most < count(value))


def test_brackets_within_texts_are_no_depth():
    check_shape(json.dumps({"content": '[{"' * 100_000}).encode())
    with pytest.raises(InvalidRequest):
        check_shape(b"[" * (MOST_NESTING + 1))
