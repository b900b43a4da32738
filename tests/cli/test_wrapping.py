"""How `threadkeep chat` breaks lines, seen on a terminal that does what terminals do."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.cli.wrapping import Wrap, cells

_WRITTEN = re.compile(r"\x1b\[(\d+)D|\x1b\[K|.", re.DOTALL)


class Terminal:
    """The rows of a terminal; it understands what a wrapped text may contain, and nothing else."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows: list[list[str]] = [[]]
        self._column = 0

    def write(self, text: str) -> None:
        for written in _WRITTEN.finditer(text):
            if written[1]:
                self._column = max(0, self._column - int(written[1]))
            elif written[0] == "\x1b[K":
                del self._rows[-1][self._column :]
            elif written[0] == "\n":
                self._begin_row()
            else:
                self._put(written[0])

    def _begin_row(self) -> None:
        self._rows.append([])
        self._column = 0

    def _put(self, character: str) -> None:
        width = cells(character)
        if width == 0:
            self._rows[-1][-1] += character
            return
        if self._column + width > self.columns:
            self._begin_row()
        self._rows[-1][self._column :] = [character, *[""] * (width - 1)]
        self._column += width

    @property
    def rows(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._rows]


def shown(text: str, columns: int, *, pieces: int = 1) -> list[str]:
    """The rows after the text has come in pieces of so many characters."""
    terminal = Terminal(columns)
    wrap = Wrap(lambda: terminal.columns)
    for at in range(0, len(text), pieces):
        terminal.write(wrap.feed(text[at : at + pieces]))
    return terminal.rows


@pytest.mark.parametrize("pieces", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Gravity pulls things together.", ["Gravity pulls", "things together."]),
        ("exactly nineteen ce fits", ["exactly nineteen ce", "fits"]),
        ("see https://example.com/long/path ok", ["see", "https://example.com/", "long/path ok"]),
        ("- an item that is long\n- two", ["- an item that is", "  long", "- two"]),
        ("  12. an item that is", ["  12. an item that", "      is"]),
        ("> quoted words go on", ["> quoted words go", "  on"]),
        ("重力使有质量的物体互相吸引。", ["重力使有质量的物体", "互相吸引。"]),
        ("重力使有质量的物体。好", ["重力使有质量的物", "体。好"]),
        ("重力使有质量的物（体）", ["重力使有质量的物", "（体）"]),
        ("abc 重力使有质量 word", ["abc 重力使有质量", "word"]),
        ("nothing is split 👍🏽👍🏽", ["nothing is split", "👍🏽👍🏽"]),
        ("cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301", ["cafe\u0301 cafe\u0301 cafe\u0301 cafe\u0301"]),
        ("one\n\ntwo", ["one", "", "two"]),
    ],
)
def test_lines_break_between_words(text: str, rows: list[str], pieces: int):
    assert shown(text, 20, pieces=pieces) == rows


def test_code_is_left_to_the_terminal():
    text = "```\na = some(long, expression)\n```\nand words are wrapped"
    assert shown(text, 20) == ["```", "a = some(long, expre", "ssion)", "```", "and words are", "wrapped"]


@pytest.mark.parametrize("columns", [0, 5])
def test_narrow_or_unknown_terminal_gets_the_text_as_it_is(columns: int):
    text = "Gravity pulls things together. " * 9
    assert Wrap(lambda: columns).feed(text) == text


def test_word_that_was_begun_before_a_resize_stays_and_the_next_ones_find_the_new_edge():
    terminal = Terminal(40)
    wrap = Wrap(lambda: terminal.columns)
    terminal.write(wrap.feed("Gravity pulls thi"))
    terminal.columns = 20
    terminal.write(wrap.feed("ngs together"))
    assert terminal.rows == ["Gravity pulls things", "together"]


_PARTS = ["a", "bcd", "-", "1.", "重", "，", "（", "e\u0301", "👍", "👍\u200d👍🏽", " ", "\t", "\n"]


@given(st.lists(st.sampled_from(_PARTS), max_size=60), st.integers(10, 30), st.integers(1, 9))
def test_pieces_change_nothing_and_nothing_is_lost(parts: list[str], columns: int, pieces: int):
    text = "".join(parts)
    whole = shown(text, columns)
    assert shown(text, columns, pieces=pieces) == whole
    assert "".join("".join(whole).split()) == "".join(text.split())
