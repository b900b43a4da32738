"""Tools that the client runs: a request brings them, the model calls them, the client sends the results."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.text import check_storable, size_text

MOST_CLIENT_TOOLS = 64
MOST_DESCRIPTION_CHARACTERS = 10_000
MOST_PARAMETERS_BYTES = 64 * 1024
MOST_BYTES = 256 * 1024
"""Maximum size of all of a request's tools: each turn stores its own."""
MOST_LEVELS = 32
MOST_REFERENCES = 100
"""How many references in a row may lead to what a schema says about one value."""
MOST_REFERENCE_CHARACTERS = 1_000
MOST_STEPS = 30_000
"""How many values of a request's schemas are read, and schemas followed: a fraction of a second of work."""

_PARAM = "tools"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what every provider accepts
# Keywords whose schemas apply to the same value, so that a cycle of them never ends.
_SAME_VALUE = ("not", "if", "then", "else")
_SAME_VALUE_EACH = ("allOf", "anyOf", "oneOf")
_MOST_INDEX_DIGITS = 6


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
    steps, size = _Steps(), 0
    for tool in tools:
        size += _check(tool, steps)
        if size > MOST_BYTES:
            raise _refused(f"A request's tools can have at most {size_text(MOST_BYTES)} in total.")


class _Steps:
    """What is left of the work that a request's tools may cost."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _refused(f"The schemas of a request's tools can have at most {MOST_STEPS} values.")


def _check(tool: ClientTool, steps: _Steps) -> int:
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
    _check_extent(tool, steps)
    size = len(json.dumps(tool.parameters, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MOST_PARAMETERS_BYTES:
        raise _too_large(tool)
    _References(tool, steps).check()
    return size + len(tool.description)


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(reason, param=_PARAM)


def _too_large(tool: ClientTool) -> InvalidRequest:
    return _refused(f"The `parameters` of `{tool.name}` can have at most {MOST_PARAMETERS_BYTES} bytes.")


def _check_extent(tool: ClientTool, steps: _Steps) -> None:
    """Refuses a schema that is too deep or obviously too large, before all of it has been read."""
    left = MOST_PARAMETERS_BYTES
    waiting: list[tuple[Any, int]] = [(tool.parameters, 0)]
    while waiting:
        part, level = waiting.pop()
        steps.take()
        left -= _least_bytes(part)
        if left < 0:
            raise _too_large(tool)
        if level == MOST_LEVELS and isinstance(part, Mapping | list):
            raise _refused(f"The `parameters` of `{tool.name}` can have at most {MOST_LEVELS} levels.")
        waiting += ((it, level + 1) for it in _parts(part))


def _least_bytes(part: Any) -> int:
    """How many bytes a value has at least, without what it contains."""
    if isinstance(part, str):
        return len(part)
    if isinstance(part, Mapping):
        return sum(map(len, cast("Mapping[str, Any]", part)))
    return len(cast("list[Any]", part)) if isinstance(part, list) else 1


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*cast("Mapping[str, Any]", value).values()]
    return cast("list[Any]", value) if isinstance(value, list) else []


class _References:
    """The references of a schema: none may lead elsewhere, or back to itself on the same value.

    A schema may refer to itself for a part of the value, as a tree's does. Each schema and each text of
    a reference is followed once.
    """

    def __init__(self, tool: ClientTool, steps: _Steps) -> None:
        self._tool = tool
        self._steps = steps
        self._lengths: dict[int, int] = {}
        """How many schemas in a row apply to the same value, by the schema that they begin with."""
        self._referred: dict[str, Any] = {}

    def check(self) -> None:
        """Refuses a schema with other references."""
        waiting: list[Any] = [self._tool.parameters]
        while waiting:
            part = waiting.pop()
            waiting += _parts(part)
            if isinstance(part, Mapping):
                self._follow(cast("Mapping[str, Any]", part), ())

    def _follow(self, schema: Mapping[str, Any], within: tuple[int, ...]) -> int:
        """The length from this schema on; refuses a row without end."""
        place = id(schema)
        if place not in self._lengths:
            if place in within or len(within) >= MOST_REFERENCES:
                raise self._endless()
            others = self._applied_with(schema)
            longest = max((self._follow(it, (*within, place)) for it in others), default=0)
            self._lengths[place] = longest + 1
        if len(within) + self._lengths[place] > MOST_REFERENCES:
            raise self._endless()
        return self._lengths[place]

    def _endless(self) -> InvalidRequest:
        return _refused(f"The `parameters` of `{self._tool.name}` refer to themselves without end.")

    def _applied_with(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The schemas that apply to the same value as this one."""
        found = [schema.get(name) for name in _SAME_VALUE]
        for name in _SAME_VALUE_EACH:
            found += _parts(schema.get(name)) if isinstance(schema.get(name), list) else ()
        if isinstance(ref := schema.get("$ref"), str):
            found.append(self._refer(ref))
        for it in found:
            if isinstance(it, Mapping):
                self._steps.take()
                yield cast("Mapping[str, Any]", it)

    def _refer(self, ref: str) -> Any:
        """What a reference leads to; None if that is nothing."""
        if ref not in self._referred:
            whose = f"The `parameters` of `{self._tool.name}`"
            if ref != "#" and not ref.startswith("#/"):
                raise _refused(f"{whose} can refer only to parts of themselves: `#/…`.")
            if len(ref) > MOST_REFERENCE_CHARACTERS:
                raise _refused(f"{whose} have a `$ref` of over {MOST_REFERENCE_CHARACTERS} characters.")
            self._referred[ref] = _at(self._tool.parameters, ref.split("/")[1:])
        return self._referred[ref]


def _at(value: Any, steps: Sequence[str]) -> Any:
    """The part of a value that the steps of a JSON pointer lead to; None if there is none."""
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(key)
        else:
            value = _entry(_parts(value), key)
    return value


def _entry(entries: Sequence[Any], key: str) -> Any:
    is_index = len(key) <= _MOST_INDEX_DIGITS and key.isascii() and key.isdigit()
    return entries[int(key)] if is_index and int(key) < len(entries) else None
