"""Values are checked against strangers' schemas; a strange schema harms nobody."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.work import counted
from tests.making import ALICE, BOB
from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.schemas.validation import find_problem
from threadkeep.schemas.work import Budget, TooMuchWork, Unlimited
from threadkeep.testing import until


def problem(schema: Any, value: Any) -> str | None:
    return find_problem(schema, value, Budget(schema, value))


CITY = {
    "type": "object",
    "properties": {
        "city": {"$ref": "#/$defs/city"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"city": {"type": "string", "enum": ["北京", "Paris"]}},
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "`city` is missing."),
        ({"city": "Rome"}, '`city` has to be one of "北京", "Paris"; it is "Rome".'),
        ({"city": "Paris", "days": "2"}, '`days` has to be a whole number or null; it is "2".'),
        ({"city": "Paris", "country": "fr"}, "`country` is an unknown field."),
        (
            {"country": "fr", "days": [2]},
            "`days` has to be a whole number or null; it is a list. `city` is missing. "
            "`country` is an unknown field.",
        ),
        (5, "The value has to be an object; it is 5."),
    ],
)
def test_what_is_wrong_is_said_with_its_place(arguments: Any, says: str):
    assert set(_sentences(problem(CITY, arguments) or "")) == set(_sentences(says))


def _sentences(text: str) -> list[str]:
    return text.split(". ")


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (
            {"type": "string", "enum": ["yes", "no"]},
            "maybe",
            '"maybe" isn\'t one of the choices: "yes", "no".',
        ),
        ({"type": "integer", "minimum": 1}, 0, "The value can be no less than 1."),
        ({"type": "integer", "exclusiveMaximum": 9}, 9, "The value can be only less than 9."),
        ({"type": "string", "maxLength": 2}, "abc", "The value can have at most 2 characters."),
        ({"type": "array", "minItems": 1}, [], "The value can have no fewer than 1 items."),
        ({"uniqueItems": True}, [1, 1], "The value contains the same item twice."),
        (
            {"properties": {"guests": {"items": {"required": ["name"]}}}},
            {"guests": [{"name": "Ann"}, {}]},
            "`guests[1].name` is missing.",
        ),
        (
            {"enum": list(range(100))},
            -1,
            "-1 isn't one of the choices: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and more.",
        ),
        ({"properties": {"a": {"multipleOf": 2}}}, {"a": 3}, "`a`: 3 is not a multiple of 2."),
        ({"enum": "ab"}, "c", "The value: 'c' is not one of 'ab'."),
        ({"type": ["string", "null"]}, True, "The value has to be a text or null; it is true."),
    ],
)
def test_what_is_wrong_is_a_sentence_without_the_validators_words(schema: Any, value: Any, says: str):
    assert problem(schema, value) == says


@pytest.mark.parametrize("version", ["http://json-schema.org/draft-07/schema#", "urn:made-up", 7, []])
def test_arguments_that_fit_are_let_through_whatever_version_the_schema_names(version: object):
    assert problem({**CITY, "$schema": version}, {"city": "北京", "days": None}) is None


def test_problem_is_short_however_long_the_value():
    assert len(problem({"properties": {"a": {"type": "integer"}}}, {"a": "x" * 100_000}) or "") < 1_000


def blow_up() -> dict[str, Any]:
    """A small schema that takes 2^40 steps to check."""
    halves = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/a0", "$defs": {**halves, "a40": {"type": "string"}}}


HARD = {"type": "string", "pattern": "^(a+)+$"}
PATTERNS: dict[str, Any] = {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}


BROKEN: dict[str, Any] = {
    "type": {"type": 12},
    "properties": {"properties": []},
    "dangling": {"$ref": "#/$defs/missing"},
    "remote": {"$ref": "http://127.0.0.1:9/schema.json"},
    "pattern": {"properties": {"a": HARD}},
    "pattern of a version": {
        "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", **HARD}}
    },
    "names": PATTERNS,
    "unevaluated": {"allOf": [PATTERNS], "unevaluatedProperties": False},
    "list": ["not", "an", "object"],
}


@pytest.mark.parametrize("schema", BROKEN.values(), ids=BROKEN)
def test_broken_schema_or_pattern_is_no_reason_to_refuse_a_value(schema: Any):
    assert find_problem(schema, {"a": "a" * 60 + "!", "a" * 60 + "!": 1}, Unlimited()) is None


def test_circle_is_not_checked_for_ever():
    assert problem({"$ref": "#"}, {}) == NOT_CHECKED


def rows(count: int) -> list[Any]:
    return [{"name": f"row {n}", "cells": [n, str(n)]} for n in range(count)]


def anchored(count: int) -> dict[str, Any]:
    found = {f"a{n}": {"$anchor": f"a{n}", "type": "object"} for n in range(count)}
    return {"items": {"allOf": [{"$ref": f"#a{n}"} for n in range(count)]}, "$defs": found}


Make = Callable[[int], tuple[Any, Any]]

COSTLY: dict[str, Make] = {
    "unique": lambda n: ({"uniqueItems": True}, rows(n)),
    "branches": lambda n: (
        {"items": {"anyOf": [{"type": "string", "maxLength": k} for k in range(n)]}},
        rows(n),
    ),
    "one of": lambda n: ({"oneOf": [{"items": {"type": "null"}}] * n}, rows(n)),
    "shown again at each level": lambda n: (
        {"$ref": "#/$defs/a", "$defs": {"a": {"not": {}, "items": {"$ref": "#/$defs/a"}}}},
        nested(min(n, 90)),
    ),
    "unknown keywords": lambda n: ({"items": {f"x-{k}": 1 for k in range(n)} | {"type": "object"}}, rows(n)),
    "enum": lambda n: ({"items": {"enum": rows(n)}}, rows(n)),
    "const": lambda n: ({"contains": {"const": rows(n)}}, [rows(n)] * 50),
    "required": lambda n: ({"items": {"required": [f"x{k}" for k in range(n)]}}, rows(n)),
    "names": lambda n: (
        {"propertyNames": {"enum": [f"x{k}" for k in range(n)]}},
        {f"x{k}": 1 for k in range(n)},
    ),
    "dependencies": lambda n: (
        {"items": {"dependentRequired": {"name": [f"x{k}" for k in range(n)]}}},
        rows(n),
    ),
    "anchors": lambda n: (anchored(n), rows(n)),
    "texts": lambda n: ({"items": {"anyOf": [{"maxLength": 1}] * 20}}, ["x" * 10_000] * n),
    "numbers": lambda n: ({"items": {"multipleOf": 1e-308}}, [1e308] * n),
    "large numbers": lambda n: ({"items": {"multipleOf": 7}}, [10**2400 + k for k in range(n)]),
    "halves": lambda n: (blow_up(), rows(n)),
}


def nested(levels: int) -> list[Any]:
    value: list[Any] = ["x" * 40] * 30
    for _ in range(levels):
        value = [value]
    return value


def work_here(schema: Any, value: Any) -> int:
    """The lines that our own process runs, with those of the library."""
    with counted(lines=True) as work, suppress(TooMuchWork):
        problem(schema, value)
    return work.lines


@pytest.mark.parametrize("make", COSTLY.values(), ids=COSTLY)
def test_check_in_our_process_is_cheap_whatever_the_schema(make: Make):
    problem({"uniqueItems": True, "type": "array"}, [])  # loads the library
    assert max(work_here(*make(size)) for size in (30, 300)) < 400_000


async def test_everybody_else_continues_while_a_costly_check_runs_and_is_refused():
    checking = asyncio.create_task(SchemaChecker(most_cpu_s=1).problem(ALICE, blow_up(), {"a": 1}))
    ticks = 0
    while not checking.done():
        await asyncio.sleep(0)
        ticks += 1
    assert checking.result() == NOT_CHECKED
    assert ticks > 1_000  # it used to be one


async def test_large_value_is_checked_elsewhere():
    checker = SchemaChecker()
    schema = {"type": "array", "uniqueItems": True, "items": {"required": ["name"]}}
    assert await checker.problem(ALICE, schema, rows(5_000)) is None
    assert (
        await checker.problem(ALICE, schema, [*rows(5_000), rows(1)[0]])
        == "The value contains the same item twice."
    )
    said = await checker.problem(ALICE, schema, [*rows(5_000), {}])
    assert said == "`[5000].name` is missing."


async def test_users_take_turns_for_the_processes_that_check(monkeypatch: pytest.MonkeyPatch):
    checker, begun, ended = SchemaChecker(), list[str](), asyncio.Semaphore(0)

    async def run(question: bytes) -> bytes:
        begun.append(json.loads(question)[1]["of"])
        await ended.acquire()
        return b"null"

    monkeypatch.setattr(checker, "_run_process", run)
    checks = [
        asyncio.create_task(checker.problem(user, blow_up(), {"of": user})) for user in [ALICE] * 8 + [BOB]
    ]
    await until(lambda: len(begun) == 2)
    for _ in checks:
        ended.release()
    await asyncio.gather(*checks)
    assert begun == [ALICE, ALICE, BOB, *[ALICE] * 6]


async def test_what_is_too_large_to_hand_over_is_refused():
    assert await SchemaChecker().problem(ALICE, {"type": "string"}, "x" * 5_000_000) == NOT_CHECKED


@pytest.mark.parametrize(
    ("items", "is_good"),
    [
        ([1, True, "1", [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        ([0, False, None], True),
        ([], True),
    ],
)
def test_unique_items_are_those_that_json_tells_apart(items: list[Any], *, is_good: bool):
    assert (problem({"uniqueItems": True}, items) is None) == is_good
    assert problem({"uniqueItems": False}, items) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON)
def test_any_json_as_schema_or_value_is_checked_or_left_to_a_worker(schema: Any, value: Any):
    try:
        said = problem(schema, value)
    except TooMuchWork:
        return
    assert said is None or isinstance(said, str)
