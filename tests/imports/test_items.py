"""The elements of an array are the same however the file is cut into parts."""

import json
import sys
from io import BytesIO
from types import FrameType
from typing import Any

import pytest

from threadkeep.imports import items as module
from threadkeep.imports.items import items

VALUES: list[Any] = [
    {},
    {"a": "\\", "b": '"}]', "c": ["{", [], {"d": '\\"[' * 3}]},
    {"线": '\\\\\n"', "e": [[1.5, None], "", ""]},
]


@pytest.mark.parametrize("part_bytes", [1, 2, 3, 7, 1000])
def test_elements_are_found_however_the_file_is_cut(monkeypatch: pytest.MonkeyPatch, part_bytes: int):
    monkeypatch.setattr(module, "PART_BYTES", part_bytes)
    for file in (json.dumps(VALUES), json.dumps(VALUES, ensure_ascii=False, indent=1)):
        found = list(items(BytesIO(file.encode()), most=10_000))
        assert [json.loads(item.content) for item in found] == VALUES
        assert [file.encode()[item.offset :][: len(item.content)] for item in found] == [
            item.content for item in found
        ]
    (cut,) = items(BytesIO(b'{"a": "\\"}'), most=10_000)
    assert cut.problem == "the file ends before it is complete"


def test_long_run_of_escapes_is_one_string():
    (found,) = items(BytesIO(b'[{"a": "' + b'\\"' * 2_000_000 + b'"}]'), most=10_000_000)
    assert json.loads(found.content) == {"a": '"' * 2_000_000}


def test_what_follows_the_array_is_ignored():
    assert [it.content for it in items(BytesIO(b'[{"a": 1}] {"b": 2}, ]]'), most=100)] == [b'{"a": 1}']


@pytest.mark.parametrize(
    "inside", [b"[]" * 2**20, b"[" * 2**20 + b"]" * 2**20, (b"[" * 99 + b"]" * 99) * 2**13, b"{}" * 2**20]
)
def test_brackets_cost_no_steps_of_their_own(inside: bytes):
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        first, second = items(BytesIO(b'[{"a": [' + inside + b"]}, {}]"), most=len(inside) * 2)
    finally:
        sys.settrace(before)
    assert steps < 5_000
    assert first.problem == f"it has more than {len(inside) * 2 // 16:,} brackets"
    assert second.content == b"{}"
