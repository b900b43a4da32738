"""Which schemas replies can be asked to fit.

A schema comes from a stranger. What is checked here costs little and names the place that is wrong; whether a
reply fits is checked within a budget (`schemas/`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from threadkeep.domain.errors import InvalidRequest

MOST_SCHEMA_BYTES = 64 * 1024
MOST_SCHEMA_PARTS = 2_000
MOST_SCHEMA_DEPTH = 40

_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_SCHEMAS = {
    "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
    "contains", "propertyNames", "not", "if", "then", "else",
}  # fmt: skip
_NAMED_SCHEMAS = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
_LISTED_SCHEMAS = {"anyOf", "allOf", "oneOf", "prefixItems"}
_NUMBERS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_COUNTS = {
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
    "maxContains",
}  # fmt: skip
_TEXTS = {"$ref", "$id", "$schema", "$anchor", "pattern", "format", "title", "description", "$comment"}

_Parts = Iterator[tuple[str, Any, int]]
"""Parts of a schema that are schemas: where each is, and how deep."""


def check_output_schema(schema: Any, param: str) -> Mapping[str, Any]:
    """A JSON schema that replies can be asked to fit; InvalidRequest names what is wrong in it, and where."""
    if not isinstance(schema, dict) or not schema:
        raise InvalidRequest(f'`{param}` is a JSON schema, such as {{"type": "object"}}.', param=param)
    root = cast("dict[str, Any]", schema)
    try:
        size = len(json.dumps(root, ensure_ascii=False).encode())
    except (RecursionError, TypeError, ValueError):
        raise InvalidRequest(f"`{param}` can't be written as JSON.", param=param) from None
    if size > MOST_SCHEMA_BYTES:
        raise InvalidRequest(
            f"`{param}` can have at most {MOST_SCHEMA_BYTES} bytes, not {size}.", param=param
        )
    waiting, count = [(param, cast("Any", root), 0)], 0
    while waiting:
        at, part, depth = waiting.pop()
        count += 1
        if count > MOST_SCHEMA_PARTS or depth > MOST_SCHEMA_DEPTH:
            raise InvalidRequest(
                f"`{param}` can have at most {MOST_SCHEMA_PARTS} parts, nested {MOST_SCHEMA_DEPTH} deep.",
                param=param,
            )
        waiting.extend(_parts_of(at, part, depth + 1, root))
    return root


def _parts_of(at: str, part: Any, depth: int, root: Mapping[str, Any]) -> _Parts:
    if isinstance(part, bool):
        return
    if not isinstance(part, dict):
        raise _wrong(at, "is an object: a JSON schema")
    for name, value in cast("dict[str, Any]", part).items():
        place = f"{at}.{name}"
        if name in _SCHEMAS:
            yield from _listed(place, value, depth) if isinstance(value, list) else [(place, value, depth)]
        elif name in _NAMED_SCHEMAS:
            if not isinstance(value, dict):
                raise _wrong(place, "is an object of JSON schemas")
            yield from ((f"{place}.{it}", of, depth) for it, of in cast("dict[str, Any]", value).items())
        elif name in _LISTED_SCHEMAS:
            if not isinstance(value, list) or not value:
                raise _wrong(place, "is a list of JSON schemas")
            yield from _listed(place, value, depth)
        else:
            _check_keyword(place, name, value, root)


def _listed(place: str, value: Any, depth: int) -> _Parts:
    return ((f"{place}[{index}]", it, depth) for index, it in enumerate(cast("Sequence[Any]", value)))


def _check_keyword(place: str, name: str, value: Any, root: Mapping[str, Any]) -> None:
    if name == "type":
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not names or any(not isinstance(it, str) or it not in _TYPES for it in names):
            raise _wrong(place, f"is one of {', '.join(sorted(_TYPES))}, or a list of them")
    elif name == "required":
        if not _is_list_of_texts(value):
            raise _wrong(place, "is a list of names of properties")
    elif name == "enum":
        if not isinstance(value, list) or not value:
            raise _wrong(place, "is a list of the values that are possible")
    elif name in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(place, "is a number")
    elif name in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise _wrong(place, "is a whole number, at least 0")
    elif name in _TEXTS:
        if not isinstance(value, str):
            raise _wrong(place, "is a text")
        if name == "$ref":
            _check_reference(place, value, root)


def _check_reference(place: str, reference: str, root: Mapping[str, Any]) -> None:
    """Only what the schema itself has can be referred to: nothing is fetched."""
    path = reference.removeprefix("#")
    if (path and not path.startswith("/")) or not reference.startswith("#"):
        raise _wrong(place, "refers to a part of the schema itself, such as `#/$defs/Name`")
    found: Any = root
    for name in path.split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(key)]
        elif isinstance(found, dict) and key in found:
            found = cast("dict[str, Any]", found)[key]
        else:
            raise _wrong(place, f"refers to {reference[:100]!r}, which the schema doesn't have")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(it, str) for it in cast("list[Any]", value))


def _wrong(place: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"`{place[:200]}` {rule}.", param=place[:200])
