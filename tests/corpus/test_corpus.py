"""What leaves the server is what left it when it was recorded, byte for byte."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.corpus.playing import RECORDED, SCENARIOS, play, recorded

SHOWN = 300
API = Path(__file__).parents[2] / "docs/api.md"
# A request's method and path, if its response is a success.
SUCCESS = re.compile(r"^> \w+: ([A-Z]+ [^ ?\n]+).*\n< 2", re.MULTILINE)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_every_wire_carries_the_recorded_bytes(name: str):
    now, then = await play(name), recorded(name)
    assert sorted(now) == sorted(then)
    for wire in then:
        assert now[wire] == then[wire], _difference(wire, then[wire], now[wire])


def test_every_operation_has_a_recorded_success():
    operations = re.findall(r"^### `([A-Z]+ [^`]+)`$", API.read_text(), re.MULTILINE)
    assert len(operations) > 60
    succeeded = "\n".join(
        found[1] for path in RECORDED.iterdir() for found in SUCCESS.finditer(path.read_bytes().decode())
    )
    missing = [it for it in operations if not re.search(f"^{_pattern(it)}$", succeeded, re.MULTILINE)]
    assert missing == []


def _pattern(operation: str) -> str:
    return re.sub(r"\\{\w+\\}", "[^/]+", re.escape(operation))


def _difference(wire: str, then: str, now: str) -> str:
    """The first lines that differ, from a little before they do."""
    pairs = zip_longest(then.split("\n"), now.split("\n"), fillvalue="(nothing)")
    number, (old, new) = next((at, pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    same = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    begin = max(same - SHOWN // 3, 0)
    shown = f"recorded: {old[begin : begin + SHOWN]}\n     now: {new[begin : begin + SHOWN]}"
    return f"{wire}, line {number}, column {same + 1}:\n{shown}\nIf you meant this: make corpus"
