"""Tools that the client runs: a request brings them, the model calls them, the client sends the results."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.text import check_storable

MOST_CLIENT_TOOLS = 64
MOST_DESCRIPTION_CHARACTERS = 10_000
MOST_PARAMETERS_BYTES = 64 * 1024
MOST_BYTES = 256 * 1024
"""Maximum size of all of a request's tools: each turn stores its own."""
MOST_LEVELS = 32
MOST_REFERENCES = 100
"""How many references in a row may lead to what a schema says about one value."""

_PARAM = "tools"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what every provider accepts
# Keywords whose schemas apply to the same value, so that a cycle of them never ends.
_SAME_VALUE = ("not", "if", "then", "else")
_SAME_VALUE_EACH = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTool:
    """A tool as the client describes it; `parameters` is a JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])


def check_client_tools(tools: Sequence[ClientTool]) -> None:
    """Refuses too many tools, equal names, and tools that models or we can't handle."""
    if len(tools) > MOST_CLIENT_TOOLS:
        raise _refused(f"A request can bring at most {MOST_CLIENT_TOOLS} tools.")
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            raise _refused(f"`{name}` is the name of {count} tools; each needs its own.")
    if sum(map(_check, tools)) > MOST_BYTES:
        raise _refused(f"A request's tools can have at most {MOST_BYTES} bytes in total.")


def _check(tool: ClientTool) -> int:
    """Refuses a tool, or returns its size."""
    if not _NAME.fullmatch(tool.name):
        raise _refused("A tool's name must have 1 to 64 characters: A-Z, a-z, 0-9, `-` and `_`.")
    if len(tool.description) > MOST_DESCRIPTION_CHARACTERS:
        raise _refused(
            f"The description of `{tool.name}` can have at most {MOST_DESCRIPTION_CHARACTERS} characters."
        )
    check_storable(tool.description, _PARAM)
    if tool.parameters.get("type", "object") != "object":
        raise _refused(f'The `parameters` of `{tool.name}` must be a JSON Schema of `"type": "object"`.')
    if _is_deeper(tool.parameters, MOST_LEVELS):
        raise _refused(f"The `parameters` of `{tool.name}` can have at most {MOST_LEVELS} levels.")
    size = len(json.dumps(tool.parameters, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MOST_PARAMETERS_BYTES:
        raise _refused(f"The `parameters` of `{tool.name}` can have at most {MOST_PARAMETERS_BYTES} bytes.")
    _check_references(tool)
    return size + len(tool.description)


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(reason, param=_PARAM)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, Mapping | list):
        return False
    return not levels or any(_is_deeper(part, levels - 1) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*cast("Mapping[str, Any]", value).values()]
    return cast("list[Any]", value) if isinstance(value, list) else []


def _check_references(tool: ClientTool) -> None:
    """Refuses references to elsewhere, and those that lead back to themselves on the same value.

    A schema may refer to itself for a part of the value, as that of a tree does.
    """
    lengths: dict[int, int] = {}
    waiting: list[Any] = [tool.parameters]
    while waiting:
        part = waiting.pop()
        waiting += _parts(part)
        if isinstance(part, Mapping):
            _follow(tool, cast("Mapping[str, Any]", part), (), lengths)


def _follow(
    tool: ClientTool, schema: Mapping[str, Any], within: tuple[int, ...], lengths: dict[int, int]
) -> int:
    """How many schemas in a row apply to the same value, from this one on; refuses a row without end."""
    place = id(schema)
    if place not in lengths:
        if place in within or len(within) >= MOST_REFERENCES:
            raise _endless(tool)
        others = _applied_with(tool, schema)
        longest = max((_follow(tool, it, (*within, place), lengths) for it in others), default=0)
        lengths[place] = longest + 1
    if len(within) + lengths[place] > MOST_REFERENCES:
        raise _endless(tool)
    return lengths[place]


def _endless(tool: ClientTool) -> InvalidRequest:
    return _refused(f"The `parameters` of `{tool.name}` refer to themselves without end.")


def _applied_with(tool: ClientTool, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas that apply to the same value as this one."""
    found = [schema.get(name) for name in _SAME_VALUE]
    for name in _SAME_VALUE_EACH:
        found += _parts(schema.get(name)) if isinstance(schema.get(name), list) else ()
    if isinstance(ref := schema.get("$ref"), str):
        found.append(_referred(tool, ref))
    yield from (cast("Mapping[str, Any]", it) for it in found if isinstance(it, Mapping))


def _referred(tool: ClientTool, ref: str) -> Any:
    if ref != "#" and not ref.startswith("#/"):
        raise _refused(f"The `parameters` of `{tool.name}` can refer only to parts of themselves: `#/…`.")
    found: Any = tool.parameters
    for step in ref.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = cast("Mapping[str, Any]", found).get(key)
        else:
            found = dict(enumerate(_parts(found))).get(int(key)) if key.isdecimal() else None
    return found
