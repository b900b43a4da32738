"""Wraps text that arrives in pieces at words on a terminal."""

import re
import unicodedata
from collections.abc import Callable

FEWEST_COLUMNS = 10
"""Wrapping is useless on a narrower terminal."""

# The start of a list item, a quote or an indented line; further lines align below its text.
_HEAD = re.compile(r"[ >]*(?:[-*+•] +|\d{1,3}[.)] +)?")
_MOST_HEAD = 40
_FENCES = ("```", "~~~")
_JOINER, _EMOJI_FACE = "\u200d", "\ufe0f"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAB = 8


def cells(character: str) -> int:
    """How many columns of a terminal it takes."""
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"} or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


class Wrap:
    """What to write for each piece of a text, so that lines break between words.

    A word is shown as it arrives; if it then grows over the edge, it moves to the next line. Code and words
    longer than a line stay as they are, so that they can be copied whole. The last column stays free, since
    terminals differ in what they do after it. Where they differ in an emoji's width, the larger counts: a
    line that is a little short does no harm.
    """

    def __init__(self, columns: Callable[[], int]) -> None:
        self._ask_columns = columns  # for each piece, as users resize their windows
        self._columns = 0
        self._is_code = False
        self._begin_line()

    def feed(self, text: str) -> str:
        """What to write for the next piece."""
        self._measure()
        if self._columns < FEWEST_COLUMNS:
            return text
        out: list[str] = []
        for character in text:
            if character == "\n":
                self._end_line(out)
                continue
            if character in " \t":
                self._end_word(out)
                self._space(character, out)
            else:
                self._add(character, out)
            if len(self._head) < _MOST_HEAD:
                self._head += character
        self._show(out)
        return "".join(out)

    def _measure(self) -> None:
        columns = self._ask_columns()
        if columns and columns != self._columns:
            # The terminal has rewrapped its content in its own way: the last word stays where it is.
            self._column %= columns
            self._can_move = False
            self._word.clear()
        self._columns = columns

    def _begin_line(self) -> None:
        self._head = ""
        self._column = 0
        self._begin_word()

    def _begin_word(self) -> None:
        self._last = ""
        self._word: list[str] = []  # kept only as long as it may have to move
        self._word_cells = self._shown = self._shown_cells = 0
        # The first word of a line wouldn't fit better on the next one.
        self._can_move = not (self._is_code or _HEAD.fullmatch(self._head))

    def _show(self, out: list[str]) -> None:
        out += self._word[self._shown :]
        self._shown, self._shown_cells = len(self._word), self._word_cells

    def _end_word(self, out: list[str]) -> None:
        self._show(out)
        self._begin_word()

    def _end_line(self, out: list[str]) -> None:
        self._show(out)
        out.append("\n")
        self._is_code ^= self._head.lstrip().startswith(_FENCES)
        self._begin_line()

    def _space(self, space: str, out: list[str]) -> None:
        width = 1 if space == " " else _TAB - self._column % _TAB
        if self._is_code or self._column + width < self._columns:
            out.append(space)
        self._column += width

    def _add(self, character: str, out: list[str]) -> None:
        if not self._last or _may_break(self._last, character):
            self._end_word(out)
        width = cells(character)
        if width and self._column + width >= self._columns:
            if self._can_move:
                self._move(out)
            elif self._column + width > self._columns:
                self._column = 0  # the terminal continues in the next row
        if character == _EMOJI_FACE and self._last and cells(self._last) == 1:
            width = 1
        if self._can_move:
            self._word.append(character)
            self._word_cells += width
        else:
            out.append(character)
        self._column += width
        if width or character == _JOINER:
            self._last = character

    def _move(self, out: list[str]) -> None:
        """Moves the word from this line to the next."""
        if self._shown_cells:
            out.append(f"\x1b[{self._shown_cells}D\x1b[K")
        head = _HEAD.match(self._head)
        indent = min(head.end() if head else 0, self._columns // 2)
        out += ["\n", " " * indent, *self._word]
        self._column = indent + self._word_cells
        self._can_move = False
        self._word.clear()


def _may_break(last: str, following: str) -> bool:
    """Whether a line may end between two characters without a space: next to wide ones it may.

    Not before what closes or ends a phrase, not after what opens one, and not within an emoji.
    """
    if last == _JOINER or ord(following) in _SKIN_TONES or cells(following) == 0:
        return False
    if cells(last) < 2 and cells(following) < 2:
        return False
    return unicodedata.category(following) not in {"Pe", "Pf", "Po", "Lm"} and unicodedata.category(
        last
    ) not in {"Ps", "Pi"}
