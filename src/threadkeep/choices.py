"""What is allowed, for errors about something else: msgspec's messages don't say it."""

import difflib
import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_STEP = re.compile(r"\w+|\[[^\[\]]*\]")


MOST_COMPARED = 100
"""Characters of an unknown name that are compared with the known ones: it may be as long as the body."""


def with_choices(message: str, kind: Any, place: str) -> str:
    """A validation error's message; with the values that `place` in `kind` accepts, if they are few.

    Of an unknown field, with the known one whose name is nearest.
    """
    unknown = _UNKNOWN.fullmatch(message)
    if not unknown and not message.startswith("Invalid enum value"):
        return message
    node: inspect.Type | None = inspect.type_info(kind)
    for step in _STEP.findall(place):
        node = _inside(node, step)
    if unknown:
        near = difflib.get_close_matches(unknown[1][:MOST_COMPARED], [*_names(node)], 1)
        return f"{message}. Perhaps you mean `{near[0]}`" if near else message
    allowed = ", ".join(sorted(map(str, _values(node))))
    return f"{message}; expected one of: {allowed}" if allowed else message


def _inside(node: inspect.Type | None, step: str) -> inspect.Type | None:
    match node:
        case inspect.Metadata(type=inner):
            return _inside(inner, step)
        case inspect.UnionType(types=types):
            return next((found for it in types if (found := _inside(it, step))), None)
        case inspect.StructType(fields=fields):
            return next((field.type for field in fields if field.encode_name == step), None)
        case inspect.DictType(value_type=inner) | inspect.CollectionType(item_type=inner):
            return inner
        case _:
            return None


def _names(node: inspect.Type | None) -> Iterator[str]:
    match node:
        case inspect.Metadata(type=inner):
            yield from _names(inner)
        case inspect.UnionType(types=types):
            for it in types:
                yield from _names(it)
        case inspect.StructType(fields=fields):
            yield from (field.encode_name for field in fields)
        case _:
            pass


def _values(node: inspect.Type | None) -> Iterator[object]:
    match node:
        case inspect.Metadata(type=inner):
            yield from _values(inner)
        case inspect.UnionType(types=types):
            for it in types:
                yield from _values(it)
        case inspect.EnumType(cls=kinds):
            yield from (kind.value for kind in kinds)
        case inspect.LiteralType(values=values):
            yield from values
        case _:
            pass
