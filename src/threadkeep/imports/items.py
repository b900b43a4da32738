"""The elements of a JSON array, one at a time, without reading the file whole.

This scans only brackets and strings, and passes each element on as raw bytes. So a broken element affects
no other, and a file of any size needs only the memory of its largest element. All brackets of a part are
found and counted at once: Python takes a step for each element, not for each bracket.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import BinaryIO

PART_BYTES = 256 * 1024
BYTES_PER_BRACKET = 16
"""Of the largest element allowed: one with more brackets would take many times its size in memory."""
# Linear whatever a file contains: a byte fits in one way only, so that going back ends at once.
_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*'
_IN_STRING = re.compile(_STRING, re.DOTALL)
_WHOLE_STRINGS = re.compile(rb'[^"]*+(?:"' + _STRING + rb'"[^"]*+)*', re.DOTALL)
"""Ends at a quote only if that string goes on in the next part."""
_TO_BRACKETS = re.compile(
    rb'([^"{}\[\]]*+(?:"' + _STRING + rb'(?:"|\\?\Z)[^"{}\[\]]*+)*)([{}\[\]]*+)', re.DOTALL
)
"""Text and strings, then the brackets that follow; at the end of a part, none do."""
_STEPS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""From brackets to signed bytes: how the depth changes."""


@dataclass(frozen=True, slots=True)
class Item:
    """One element: its number from 1, where it begins, and its bytes unless it has a problem."""

    number: int
    offset: int
    content: bytes
    problem: str | None = None


def items(file: BinaryIO, *, most: int) -> Iterator[Item]:
    """The objects of an array, or the file's single object; one over `most` bytes has no content.

    What follows the array is ignored.
    """
    return _Splitter(most).split(file)


class _Brackets:
    """The brackets of a part from a place on, and where they are."""

    def __init__(self, part: bytes, at: int) -> None:
        found = _TO_BRACKETS.findall(part, at)
        runs = [run for _, run in found]
        self.signs = b"".join(runs)
        self._counts = list(accumulate(map(len, runs)))
        self._ends = list(accumulate(map(len, chain.from_iterable(found)), initial=at))[2::2]

    def place(self, index: int) -> int:
        """Where a bracket is in the part."""
        run = bisect_right(self._counts, index)
        return self._ends[run] - (self._counts[run] - index)

    def depths(self, before: int) -> list[int]:
        """The depth before each bracket, and after the last."""
        return list(accumulate(array("b", self.signs.translate(_STEPS)), initial=before))


class _Splitter:
    def __init__(self, most: int) -> None:
        self._most = most
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._top = 0  # the depth of elements: 1 within an array, 0 if the file is an object
        self._has_begun = False
        self._has_ended = False
        self._number = 0
        self._begin = 0
        self._kept = bytearray()
        self._brackets = 0
        self._problem: str | None = None

    def split(self, file: BinaryIO) -> Iterator[Item]:
        offset = 0
        is_first = True
        while not self._has_ended and (part := file.read(PART_BYTES)):
            if is_first:
                part = part.removeprefix(b"\xef\xbb\xbf")
                is_first = False
            yield from self._take(part, offset)
            offset += len(part)
        if self._depth and not self._has_ended:
            self._number += self._depth > self._top
            yield Item(max(self._number, 1), self._begin, b"", "the file ends before it is complete")

    def _take(self, part: bytes, offset: int) -> Iterator[Item]:
        at = 0
        while self._in_string and at < len(part):
            at = self._after_string(part, at)
        brackets = _Brackets(part, at)
        signs, depths = brackets.signs, brackets.depths(self._depth)
        begin = 0  # of the element's bytes in this part
        index = 0
        while index < len(signs):
            if depths[index] > self._top:  # within an element
                after = _next(depths, self._top, index + 1)
                self._brackets += (after or len(signs)) - index
                if after is None:
                    break
                self._keep(part[begin : brackets.place(after - 1) + 1])
                yield self._item()
                index = after
            elif signs[index] in b"}]":
                self._has_ended = True
                return
            else:
                if not self._has_begun and signs[index] in b"[":
                    self._top = 1
                else:
                    begin = brackets.place(index)
                    self._begin = offset + begin
                self._has_begun = True
                index += 1
        self._depth = depths[-1]
        if self._depth > self._top:
            self._keep(part[begin:])
        if not self._in_string:
            self._begin_string(part, brackets.place(len(signs) - 1) + 1 if signs else at)

    def _begin_string(self, part: bytes, at: int) -> None:
        """Notes whether a string after the last bracket goes on in the next part."""
        found = _WHOLE_STRINGS.match(part, at)
        quote = found.end() if found else at
        if quote < len(part):
            self._in_string = True
            while quote + 1 < len(part):
                quote = self._after_string(part, quote + 1) - 1

    def _after_string(self, part: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _IN_STRING.match(part, at)
        at = found.end() if found else at
        self._in_string = part[at : at + 1] != b'"'
        self._escaped = part[at : at + 1] == b"\\"
        return at + 1

    def _keep(self, some: bytes) -> None:
        if len(self._kept) + len(some) > self._most:
            self._problem = f"it is larger than {self._most:,} bytes"
        elif self._brackets > self._most // BYTES_PER_BRACKET:
            self._problem = f"it has more than {self._most // BYTES_PER_BRACKET:,} brackets"
        if self._problem is None:
            self._kept += some
        else:
            self._kept.clear()

    def _item(self) -> Item:
        self._number += 1
        item = Item(self._number, self._begin, bytes(self._kept), self._problem)
        self._kept.clear()
        self._brackets = 0
        self._problem = None
        return item


def _next(depths: list[int], depth: int, start: int) -> int | None:
    """Where this depth is reached next."""
    try:
        return depths.index(depth, start)
    except ValueError:
        return None
