"""Counts the steps of a regular expression: the same number on every machine, unlike a time.

A backtracking matcher as Python's own is, without its shortcuts, so that it never counts too few.
"""

import importlib
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

_parser: Any = importlib.import_module("re._parser")
_casefix: Callable[[int], int] = lambda code: ord(chr(code).lower()[0])  # noqa: E731

Continue = Callable[[int], bool]
_WIDE_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_ONE_CHARACTER = {"LITERAL", "NOT_LITERAL", "IN", "ANY"}


def count_steps(pattern: "re.Pattern[Any]", text: str | bytes, method: str) -> int:
    """The steps of `method` (fullmatch, match, or a search through the whole text) over a text."""
    matcher = _Matcher(pattern, text)
    with _deep_recursion():
        if method in {"fullmatch", "match"}:
            matcher.matches_at(0, whole=method == "fullmatch")
        else:
            matcher.find_all()
    return matcher.steps


def sample_characters(pattern: "re.Pattern[Any]") -> list[str]:
    """One character for each place of a pattern: what is made of them goes furthest into it."""
    found: dict[str, None] = {}
    _collect(_tree(pattern), found)
    return list(found)


@cache  # one pattern is tried on very many texts
def _tree(pattern: "re.Pattern[Any]") -> list[Any]:
    return list(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _collect(nodes: Any, found: dict[str, None]) -> None:
    for node in nodes:
        name, detail = str(node[0]), node[1]
        if name in {"LITERAL", "NOT_LITERAL"}:
            found[chr(detail)] = None
        elif name == "RANGE":
            found[chr(detail[0])] = None
        elif name == "CATEGORY":
            found[_SAMPLES[str(detail)]] = None
        elif name == "IN":
            _collect(detail[:3], found)
        elif name == "BRANCH":
            for option in detail[1]:
                _collect(option, found)
        elif name == "SUBPATTERN":
            _collect(detail[3], found)
        elif name in _WIDE_REPEATS:
            _collect(detail[2], found)
        elif name in {"ASSERT", "ASSERT_NOT"}:
            _collect(detail[1], found)


@contextmanager
def _deep_recursion() -> Generator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Matcher:
    def __init__(self, pattern: "re.Pattern[Any]", text: str | bytes) -> None:
        self.steps = 0
        self._flags = pattern.flags
        self._codes: Sequence[int] = text if isinstance(text, bytes) else [ord(it) for it in text]
        self._tree = _tree(pattern)
        self._known: dict[tuple[int, int], bool] = {}
        self._end = -1

    def find_all(self) -> None:
        at = 0
        while at <= len(self._codes):
            at = max(self._end, at + 1) if self.matches_at(at, whole=False) else at + 1

    def matches_at(self, at: int, *, whole: bool) -> bool:
        def accept(end: int) -> bool:
            self._end = end
            return not whole or end == len(self._codes)

        return self._run(self._tree, 0, at, accept)

    def _run(self, nodes: Sequence[Any], index: int, at: int, go_on: Continue) -> bool:
        self.steps += 1
        if index == len(nodes):
            return go_on(at)
        node = nodes[index]
        name, detail = str(node[0]), node[1]

        def rest(end: int) -> bool:
            return self._run(nodes, index + 1, end, go_on)

        if name in _ONE_CHARACTER:
            return self._fits(node, at) and rest(at + 1)
        match name:
            case "AT":
                return self._is_at(str(detail), at) and rest(at)
            case "SUBPATTERN":
                return self._run(detail[3], 0, at, rest)
            case "BRANCH":
                return any(self._run(option, 0, at, rest) for option in detail[1])
            case "ASSERT" | "ASSERT_NOT":
                begin = at if detail[0] > 0 else at - detail[1].getwidth()[0]
                found = begin >= 0 and self._run(detail[1], 0, begin, lambda _: True)
                return found == (name == "ASSERT") and rest(at)
            case _ if name in _WIDE_REPEATS:
                return self._repeat(name, detail, at, rest)
            case _:
                raise NotImplementedError(name)

    def _repeat(self, name: str, detail: Any, at: int, rest: Continue) -> bool:
        least, most, inner = detail[0], int(detail[1]), detail[2]
        if len(inner) == 1 and str(inner[0][0]) in _ONE_CHARACTER:
            return self._repeat_one(name, least, most, inner[0], at, rest)

        def further(count: int, here: int) -> bool:
            def again(end: int) -> bool:
                return end > here and further(count + 1, end)

            if count < least:
                return self._run(inner, 0, here, lambda end: further(count + 1, end))
            if name == "MIN_REPEAT":
                return rest(here) or (count < most and self._run(inner, 0, here, again))
            return (count < most and self._run(inner, 0, here, again)) or rest(here)

        return further(0, at)

    def _repeat_one(self, name: str, least: int, most: int, inner: Any, at: int, rest: Continue) -> bool:
        if name == "MIN_REPEAT":
            count = 0
            while count < least or not rest(at + count):
                if count == most or not self._fits(inner, at + count):
                    return False
                count += 1
            return True
        count = 0
        while count < most and self._fits(inner, at + count):
            count += 1
        shortest = count if name == "POSSESSIVE_REPEAT" else least
        return any(rest(at + taken) for taken in range(count, shortest - 1, -1))

    def _fits(self, node: Any, at: int) -> bool:
        self.steps += 1
        if at >= len(self._codes):
            return False
        key = (id(node), self._codes[at])
        if key not in self._known:
            self._known[key] = self._is_one_of(str(node[0]), node[1], self._codes[at])
        return self._known[key]

    def _is_one_of(self, name: str, detail: Any, code: int) -> bool:
        codes = {code, _casefix(code)} if self._flags & re.IGNORECASE else {code}
        match name:
            case "ANY":
                return code != 10 or bool(self._flags & re.DOTALL)
            case "LITERAL":
                return detail in codes or (len(codes) > 1 and _casefix(detail) in codes)
            case "NOT_LITERAL":
                return detail not in codes
            case _:
                is_negated = str(detail[0][0]) == "NEGATE"
                return any(self._is_in(part, it) for part in detail for it in codes) != is_negated

    def _is_in(self, part: Any, code: int) -> bool:
        match str(part[0]):
            case "LITERAL":
                return part[1] == code
            case "RANGE":
                return part[1][0] <= code <= part[1][1]
            case "CATEGORY":
                return bool(re.match(_CATEGORIES[str(part[1])], chr(code), self._flags & re.ASCII))
            case _:
                return False

    def _is_at(self, place: str, at: int) -> bool:
        line = bool(self._flags & re.MULTILINE)
        before = self._codes[at - 1] if at else None
        after = self._codes[at] if at < len(self._codes) else None
        match place:
            case "AT_BEGINNING":
                return before is None or (line and before == 10)
            case "AT_BEGINNING_STRING":
                return before is None
            case "AT_END":
                return after is None or (after == 10 and (line or at == len(self._codes) - 1))
            case "AT_END_STRING":
                return after is None
            case _:
                raise NotImplementedError(place)


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip
_SAMPLES = {
    "CATEGORY_DIGIT": "1", "CATEGORY_NOT_DIGIT": "a", "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "a", "CATEGORY_WORD": "a", "CATEGORY_NOT_WORD": " ",
}  # fmt: skip
