"""The elements of a JSON array, one at a time, without reading the file whole.

This scans only brackets and strings, and passes each element on as raw bytes. So a broken element affects
no other, and a file of any size needs only the memory of its largest element.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

PART_BYTES = 1024 * 1024
# Possessive, so that each takes linear time whatever a file contains.
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""Past whole strings, too; so it ends at a quote only if that string goes on in the next part."""


@dataclass(frozen=True, slots=True)
class Item:
    """One element: its number from 1, where it begins, and its bytes unless it has a problem."""

    number: int
    offset: int
    content: bytes
    problem: str | None = None


def items(file: BinaryIO, *, most: int) -> Iterator[Item]:
    """The objects of an array, or the file's single object; one over `most` bytes has no content."""
    return _Splitter(most).split(file)


class _Splitter:
    def __init__(self, most: int) -> None:
        self._most = most
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._top = 0  # the depth of elements: 1 within an array, 0 if the file is an object
        self._number = 0
        self._begin = 0
        self._kept = bytearray()
        self._too_large = False

    def split(self, file: BinaryIO) -> Iterator[Item]:
        offset = 0
        is_first = True
        while part := file.read(PART_BYTES):
            if is_first:
                part = part.removeprefix(b"\xef\xbb\xbf")
                is_first = False
            yield from self._take(part, offset)
            offset += len(part)
        if self._depth:
            self._number += self._depth > self._top
            yield Item(max(self._number, 1), self._begin, b"", "the file ends before it is complete")

    def _take(self, part: bytes, offset: int) -> Iterator[Item]:
        at = 0
        begin = 0  # of the element's bytes in this part
        while at < len(part):
            if self._in_string:
                at = self._after_string(part, at)
                continue
            found = _TO_BRACKET.match(part, at)
            at = (found.end() if found else at) + 1
            if at > len(part):
                break
            sign = part[at - 1 : at]
            if sign == b'"':
                self._in_string = True
            elif sign in b"{[":
                if sign == b"[" and not self._depth and not self._number:
                    self._top = 1
                elif self._depth == self._top:
                    begin, self._begin = at - 1, offset + at - 1
                self._depth += 1
            else:
                self._depth = max(self._depth - 1, 0)
                if self._depth == self._top:
                    self._keep(part[begin:at])
                    yield self._item()
        if self._depth > self._top:
            self._keep(part[begin:])

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
            self._too_large = True
            self._kept.clear()
        if not self._too_large:
            self._kept += some

    def _item(self) -> Item:
        self._number += 1
        problem = f"it is larger than {self._most:,} bytes" if self._too_large else None
        item = Item(self._number, self._begin, bytes(self._kept), problem)
        self._kept.clear()
        self._too_large = False
        return item
