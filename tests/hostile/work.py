"""Counts the work of a function on a text: the same number on every machine, unlike a time."""

import re
import sys
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any, cast

import pytest


class Work:
    """Lines of ours that were run, and characters that were handed to what is not written in Python."""

    def __init__(self) -> None:
        self.lines = 0
        self.characters = 0

    @property
    def total(self) -> int:
        return self.lines + self.characters


@contextmanager
def counted(*, lines: bool) -> Generator[Work]:
    """Counts what is done in the block; nothing that was remembered from before makes it cheaper."""
    found = _in_modules(len(sys.modules))
    for forget in found.caches:
        forget()
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        for module, name, pattern in found.patterns:
            patch.setattr(module, name, _CountedPattern(pattern, work))
        patch.setattr(unicodedata, "normalize", _counted_normalize(work))
        before = sys.gettrace()
        if lines:
            sys.settrace(_line_counter(work))
        try:
            yield work
        finally:
            sys.settrace(before)


@dataclass(frozen=True)
class _Found:
    """What our modules remember, and the patterns that they have."""

    caches: list[Callable[[], None]]
    patterns: list[tuple[ModuleType, str, "re.Pattern[Any]"]]


@lru_cache(maxsize=1)
def _in_modules(loaded: int) -> _Found:
    """Looked for again only when so many modules are not loaded any more, or more of them."""
    ours = [module for name, module in sys.modules.items() if name.startswith("threadkeep.")]
    named = [(module, name, value) for module in ours for name, value in vars(module).items()]
    return _Found(
        caches=[value.cache_clear for _, _, value in named if hasattr(value, "cache_clear")],
        patterns=[
            (module, name, cast("re.Pattern[Any]", value))
            for module, name, value in named
            if isinstance(value, re.Pattern)
        ],
    )


class _CountedPattern:
    """A pattern that notes how much it was given; `test_patterns` shows that it takes linear time for it."""

    def __init__(self, pattern: "re.Pattern[Any]", work: Work) -> None:
        self._pattern = pattern
        self._work = work

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._pattern, name)
        return self._noting(value) if callable(value) else value

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            found: Any = method(*arguments)
            text = arguments[1 if method.__name__ == "sub" else 0]
            begin = next((it for it in arguments if isinstance(it, int)), 0)
            # It went no further than its match.
            end = cast("re.Match[Any]", found).end() if isinstance(found, re.Match) else len(text)
            self._work.characters += max(0, end - begin)
            return cast("Any", found)

        return call


def _counted_normalize(work: Work) -> Callable[[Any, str], str]:
    real = unicodedata.normalize

    def normalize(form: Any, text: str) -> str:
        work.characters += len(text) ** 2  # it sorts a run of marks by putting each in its place
        return real(form, text)

    return normalize


def _line_counter(work: Work) -> Callable[..., Any]:
    def trace(frame: FrameType, event: str, argument: object) -> Any:
        work.lines += event == "line"
        return trace

    return trace
