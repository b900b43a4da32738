"""No regular expression of ours takes more than linear time, whatever it is given."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import threadkeep
from tests.hostile.steps import count_steps, sample_characters
from tests.hostile.texts import NAMES, hostile_text

CHARACTERS = 60
# Twice the text may take twice the steps; a bounded look ahead weighs more in a short text.
MOST_GROWTH = 2.3
FEW_STEPS = 250
_METHODS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "split"}


class Used(NamedTuple):
    """A pattern, and how it is used: what is matched once at the beginning cannot begin again."""

    place: str
    pattern: "re.Pattern[Any]"
    method: str


def used_patterns() -> Iterator[Used]:
    """The patterns of all our modules, those with a name and those that stand within a call."""
    for found in pkgutil.walk_packages(threadkeep.__path__, "threadkeep."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        source = Path(str(module.__file__)).read_text()
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                methods = set(re.findall(rf"\b{name}\.(\w+)", source)) & _METHODS or {"search"}
                yield from (Used(f"{module.__name__}.{name}", value, method) for method in methods)
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=method),
                    args=[ast.Constant(value=str(it)), *_],
                ) if method in _METHODS:
                    yield Used(f"{module.__name__}:{node.lineno}", re.compile(it), method)
                case _:
                    pass


def hostile_pairs(pattern: "re.Pattern[Any]") -> Iterator[tuple[str, str, str]]:
    """Texts of two lengths: those that were thought of, and those that the pattern itself asks for."""
    for name in NAMES:
        yield name, hostile_text(name, CHARACTERS), hostile_text(name, 2 * CHARACTERS)
    characters = sample_characters(pattern)[:6]
    for first in characters:
        for last in ("", "!", "\n"):
            yield f"{first!r} and {last!r}", first * CHARACTERS + last, first * 2 * CHARACTERS + last
        for second in characters:
            pair = first + second
            yield repr(pair), pair * (CHARACTERS // 2) + "!", pair * CHARACTERS + "!"


def steep_growth(used: Used) -> Iterator[str]:
    """The texts on which a pattern takes more than linear steps."""
    reads_bytes = isinstance(used.pattern.pattern, bytes)
    for name, *texts in hostile_pairs(used.pattern):
        short, long = (text.encode() if reads_bytes else text for text in texts)
        many = count_steps(used.pattern, long, used.method)
        if many <= MOST_GROWTH * FEW_STEPS:
            continue
        few = count_steps(used.pattern, short, used.method)
        if many > MOST_GROWTH * few:
            yield f"{used.place}, {used.method}, {name}: {few} steps, then {many}"


def test_every_pattern_takes_linear_steps():
    used = set(used_patterns())
    assert len(used) > 50
    steep = [growth for pattern in used for growth in steep_growth(pattern)]
    assert not steep, "\n".join(sorted(steep))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("V+C+", "V"), (r"(a+)+$", "a"), (r"\s*\n", " "), (r"(?:a|b)*c", "ab"), (r"\[[^\]]*\]", "[")],
)
def test_counting_finds_patterns_that_take_more(pattern: str, text: str):
    sizes = (8, 16) if pattern == "(a+)+$" else (CHARACTERS, 2 * CHARACTERS)
    few, many = (count_steps(re.compile(pattern), text * size + "!", "search") for size in sizes)
    assert many > MOST_GROWTH * max(few, FEW_STEPS)
