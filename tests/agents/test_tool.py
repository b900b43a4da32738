"""Tools: what a model is told of a function, and how it is called."""

import dataclasses
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from threadkeep.agents import Tool, tool
from threadkeep.agents.values import Unstorable


class Size(Enum):
    SMALL = "small"


@dataclasses.dataclass
class Point:
    x: int


class Part(pydantic.BaseModel):
    size: Size


class Shop(pydantic.BaseModel):
    parts: list[Part] = []


@tool
async def refund(
    order_id: int,
    amount: Decimal = Decimal("1.5"),
    why: Annotated[str, msgspec.Meta(description="Why.")] = "",
    at: Point | None = None,
    kind: Literal["a", "b"] = "a",
    tags: list[str] = [],  # noqa: B006
) -> str:
    """Refunds an order.

    All of it.
    """
    return f"{order_id} {amount} {why} {at} {kind} {tags}"


def test_the_schema_comes_from_the_annotations_and_the_description_from_the_docstring():
    declared = refund.declaration
    assert declared.name == "refund"
    assert declared.description == "Refunds an order.\n\nAll of it."
    assert (declared.effect, declared.access) == ("write", "allow")
    parameters = declared.parameters
    assert parameters["type"] == "object"
    assert parameters["required"] == ["order_id"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["order_id"] == {"type": "integer"}
    assert parameters["properties"]["why"]["description"] == "Why."
    assert parameters["properties"]["kind"]["enum"] == ["a", "b"]
    assert parameters["$defs"]["Point"]["properties"] == {"x": {"type": "integer"}}


async def test_a_tool_is_called_with_what_a_model_gives():
    given = {"order_id": "7", "amount": 2.5, "at": {"x": 1}, "tags": ["t"]}
    assert await refund.call(given) == "7 2.5  Point(x=1) a ['t']"
    assert await refund(1) == "1 1.5  None a []"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "missing required field `order_id`"),
        ({"order_id": "x"}, "`$.order_id`"),
        ({"order_id": 1, "other": 2}, "unknown field `other`"),
        ({"order_id": 1, "kind": "c"}, "Invalid enum value 'c'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(given: dict[str, Any], sentence: str):
    with pytest.raises(Unstorable) as caught:
        refund.call(given)
    assert sentence in str(caught.value)


def test_a_default_that_can_be_changed_is_new_for_every_call():
    def collect(item: str, into: list[str] = ["a"]) -> list[str]:  # noqa: B006
        into.append(item)
        return into

    it = Tool(collect)
    assert it.call({"item": "b"}) == ["a", "b"]
    assert it.call({"item": "c"}) == ["a", "c"]


def test_pydantic_models_are_arguments_too():
    def build(shop: Shop, other: Shop | None = None) -> Any:
        return shop

    it = Tool(build)
    parameters = it.parameters
    assert parameters["$defs"]["Part"]["properties"]["size"] == {"$ref": "#/$defs/Size"}
    assert it.call({"shop": {"parts": [{"size": "small"}]}}) == Shop(parts=[Part(size=Size.SMALL)])


def test_unannotated_arguments_are_anything():
    def anything(value: Any) -> Any:
        return value

    anything.__annotations__.clear()
    assert Tool(anything).call({"value": [1, {"a": None}]}) == [1, {"a": None}]


def takes_more(*args: int) -> None: ...
def takes_more_by_name(**kwargs: int) -> None: ...
def takes_one(a: int) -> None: ...


def _unnamed(a: int) -> None: ...


unnamed: Any = _unnamed
unnamed.__name__ = "<lambda>"


@pytest.mark.parametrize(
    ("fn", "options", "error", "sentence"),
    [
        (takes_more, {"name": "x"}, TypeError, "takes *args; a tool's arguments need names"),
        (takes_more_by_name, {"name": "x"}, TypeError, "takes *kwargs"),
        (unnamed, {}, ValueError, "A tool's name is 1 to 64 letters"),
        (takes_one, {"name": "a b"}, ValueError, "A tool's name"),
        (takes_one, {"name": "a", "effect": "none"}, ValueError, "`effect` is one of"),
        (takes_one, {"name": "a", "access": "none"}, ValueError, "`access` is one of"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(
    fn: Any, options: dict[str, Any], error: type[Exception], sentence: str
):
    with pytest.raises(error) as caught:
        tool(**options)(fn)
    assert sentence in str(caught.value)


def test_annotations_that_cannot_be_resolved_are_refused():
    def lost(value: int) -> None: ...

    lost.__annotations__["value"] = "Nowhere"
    with pytest.raises(TypeError, match="The annotations of `lost` can't be resolved"):
        tool(lost)
