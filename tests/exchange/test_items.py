"""The elements of an array are the same however the file is cut into parts."""

import json
from io import BytesIO
from typing import Any

import pytest

from threadkeep.exchange import items as module
from threadkeep.exchange.items import items

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
