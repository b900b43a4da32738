"""What leaves the server is what left it when it was recorded, byte for byte."""

from itertools import zip_longest

import pytest

from tests.corpus.playing import SCENARIOS, play, recorded

SHOWN = 300


@pytest.mark.parametrize("name", SCENARIOS)
async def test_every_wire_carries_the_recorded_bytes(name: str):
    now, then = await play(name), recorded(name)
    assert sorted(now) == sorted(then)
    for wire in then:
        assert now[wire] == then[wire], _difference(wire, then[wire], now[wire])


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
