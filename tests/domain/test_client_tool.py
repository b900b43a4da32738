"""The limits of tools that clients run."""

from collections.abc import Iterator
from typing import Any

import pytest

from threadkeep.domain.client_tool import (
    MOST_BYTES,
    MOST_CLIENT_TOOLS,
    MOST_DESCRIPTION_CHARACTERS,
    MOST_LEVELS,
    MOST_PARAMETERS_BYTES,
    MOST_STEPS,
    ClientTool,
    check_client_tools,
)
from threadkeep.domain.errors import InvalidRequest


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"properties": schema}
    return schema


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object"},
        {"properties": {"a": {"type": "string"}}},
        nested(MOST_LEVELS),
        {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"next": {"$ref": "#/$defs/a"}}}}},
        {"properties": {"a": {"$ref": "#/$defs/~1a~0"}}, "$defs": {"/a~": {}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
    ],
)
def test_schemas_that_models_understand_are_accepted(parameters: dict[str, Any]):
    check_client_tools([ClientTool(name="paint-it_2", description="Paints.", parameters=parameters)])


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "string"},
        {"type": ["object", "null"]},
        nested(MOST_LEVELS + 1),
        {"description": "x" * MOST_PARAMETERS_BYTES},
        {"description": "é" * (MOST_PARAMETERS_BYTES // 2)},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"anyOf": [{}, {"$ref": "#/properties/a/anyOf/1"}]}}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        {"$defs": {f"{n}": {"$ref": f"#/$defs/{n + 1}"} for n in range(1_000)}},
        {"properties": {"a": {"$ref": "https://example.org/schema.json"}}},
        {"$ref": "other.json#/a"},
        {"a": [], "$ref": "#/a/" + "1" * 5_000},
        {"a": [[0] for _ in range(MOST_STEPS // 2)]},
        {"a": list(range(10**6))},
        {"a": {f"{n}": 0 for n in range(10**5)}},
    ],
)
def test_schemas_that_are_huge_or_never_end_are_refused(parameters: dict[str, Any]):
    with pytest.raises(InvalidRequest) as refused:
        check_client_tools([ClientTool(name="a", description="", parameters=parameters)])
    assert refused.value.param == "tools"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65, "a\n"])
def test_names_that_providers_refuse_are_refused(name: str):
    with pytest.raises(InvalidRequest):
        check_client_tools([ClientTool(name=name)])


@pytest.mark.parametrize(
    "tools",
    [
        [ClientTool(name="a"), ClientTool(name="a")],
        [ClientTool(name=f"t{n}") for n in range(MOST_CLIENT_TOOLS + 1)],
        [ClientTool(name="a", description="x" * (MOST_DESCRIPTION_CHARACTERS + 1))],
        [ClientTool(name="a", description="\0")],
        [ClientTool(name=f"t{n}", parameters={"description": "x" * (MOST_BYTES // 8)}) for n in range(9)],
    ],
    ids=["same name", "many", "long description", "NUL", "large together"],
)
def test_tools_that_are_too_much_are_refused(tools: list[ClientTool]):
    with pytest.raises(InvalidRequest):
        check_client_tools(tools)


class CountedList(list[Any]):
    """A list that counts how many of its entries are looked at."""

    looked_at = 0

    def __iter__(self) -> Iterator[Any]:
        for entry in super().__iter__():
            self.looked_at += 1
            yield entry


@pytest.mark.parametrize(
    "ref", ["#//0", "#//9999", "#//15499", "#//x", "#//٣", "#//", "#/", "#//" + "9" * 900]
)
def test_references_cost_as_much_as_the_schema_has_values(ref: str):
    entries = CountedList([0] * 15_500)
    references = [{"$ref": ref} for _ in range(15_000 // (len(ref) + 12))]
    parameters = {"type": "object", "": entries, "x": references}
    check_client_tools([ClientTool(name="a", parameters=parameters)])
    assert entries.looked_at <= 3 * len(entries), "each is read a few times, however many refer to it"


def test_steps_are_counted_over_all_tools():
    lists: dict[str, Any] = {"a": [[] for _ in range(MOST_STEPS // 10)]}
    with pytest.raises(InvalidRequest, match="values"):
        check_client_tools([ClientTool(name=f"t{n}", parameters=lists) for n in range(11)])
