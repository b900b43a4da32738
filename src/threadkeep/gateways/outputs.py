"""JSON that providers hold their models to: which schemas they take, and what their refusals are about.

The prompt asks for the JSON in any case, and the engine checks it: what is sent here makes a repair rare.
"""

from collections.abc import Mapping
from typing import Any, cast

NAME = "reply"
"""What the schema is called where it needs a name."""

_PLAIN = {"type", "title", "description", "enum", "const"}
_IN_REFUSALS = (
    "response_format", "text.format", "output_config", "output_format", "output format", "structured output",
    "schema", "grammar",
)  # fmt: skip


def is_any_object(schema: Mapping[str, Any]) -> bool:
    """Whether every object fits."""
    return dict(schema) == {"type": "object"}


def is_strict(schema: Mapping[str, Any], *, may_refer: bool = True) -> bool:
    """Whether all providers with such a feature can hold a model to it: every object has exactly the named
    properties, and nothing limits values except their types and lists of them.
    """
    if schema.get("type") != "object":
        return False
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))
    parts = [{name: it for name, it in schema.items() if name != "$defs"}, *definitions.values()]
    return all(_is_strict(it, may_refer) for it in parts)


def _is_strict(part: Any, may_refer: bool) -> bool:
    if not isinstance(part, dict):
        return False
    schema = cast("dict[str, Any]", part)
    if "$ref" in schema:
        return may_refer and schema.keys() <= {"$ref", "title", "description"}
    keywords = schema.keys() - _PLAIN
    if "anyOf" in keywords:
        return keywords == {"anyOf"} and all(_is_strict(it, may_refer) for it in schema["anyOf"])
    match schema.get("type"):
        case "object":
            return _is_strict_object(schema, keywords, may_refer)
        case "array":
            return keywords == {"items"} and _is_strict(schema["items"], may_refer)
        case _:
            return not keywords and bool(schema.keys() & {"type", "enum", "const"})


def _is_strict_object(schema: dict[str, Any], keywords: set[str], may_refer: bool) -> bool:
    properties = cast("dict[str, Any]", schema.get("properties", {}))
    return (
        keywords <= {"properties", "required", "additionalProperties"}
        and schema.get("additionalProperties") is False
        and set(schema.get("required", ())) == properties.keys()
        and all(_is_strict(it, may_refer) for it in properties.values())
    )


def is_about_output(reason: str) -> bool:
    """Whether a refusal is about what the reply is to fit."""
    return any(word in reason.lower() for word in _IN_REFUSALS)


def is_about_schema(reason: str) -> bool:
    """Whether it is about this schema, and not about all."""
    return "schema" in reason.lower()
