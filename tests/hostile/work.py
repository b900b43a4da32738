"""Counts the work of a function on a text: the same number on every machine, unlike a time."""

import re
import sys
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
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
    for module in _modules():
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        for module in _modules():
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern):
                    patch.setattr(module, name, _CountedPattern(cast("re.Pattern[Any]", value), work))
        patch.setattr(unicodedata, "normalize", _counted_normalize(work))
        before = sys.gettrace()
        if lines:
            sys.settrace(_line_counter(work))
        try:
            yield work
        finally:
            sys.settrace(before)


def _modules() -> list[ModuleType]:
    """Our modules that are loaded."""
    return [module for name, module in sys.modules.items() if name.startswith("threadkeep.")]


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
