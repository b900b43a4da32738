"""Arguments are checked against the tool's schema; a strange schema harms nobody."""

from typing import Any

import pytest

from threadkeep.engine.arguments import problem_with
from threadkeep.ports.tools import Tool


def problem(schema: Any, arguments: dict[str, Any]) -> str | None:
    return problem_with(Tool("server", "tool", "", schema, 0), arguments)


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
        ({}, "$: 'city' is a required property"),
        ({"city": "Rome"}, "$.city: 'Rome' is not one of ['北京', 'Paris']"),
        ({"city": "Paris", "days": "2"}, "$.days: '2' is not valid under any of the given schemas"),
        ({"city": "Paris", "country": "fr"}, "'country' was unexpected"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(arguments: dict[str, Any], says: str):
    assert says in (problem(CITY, arguments) or "")


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


STRANGE: dict[str, Any] = {
    "type": {"type": 12},
    "properties": {"properties": []},
    "dangling": {"$ref": "#/$defs/missing"},
    "circle": {"$ref": "#"},
    "remote": {"$ref": "http://127.0.0.1:9/schema.json"},
    "pattern": {"properties": {"a": HARD}},
    "pattern of a version": {
        "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", **HARD}}
    },
    "names": PATTERNS,
    "unevaluated": {"allOf": [PATTERNS], "unevaluatedProperties": False},
    "blow-up": blow_up(),
    "list": ["not", "an", "object"],
}


@pytest.mark.parametrize("schema", STRANGE.values(), ids=STRANGE)
def test_strange_schema_is_no_reason_to_refuse_a_call(schema: Any):
    assert problem(schema, {"a": "a" * 60 + "!", "a" * 60 + "!": 1}) is None
