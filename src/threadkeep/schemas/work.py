"""How much work a check may cost in the process that serves everybody.

One keyword of a schema on one value takes time in proportion to the whole schema (names that are compared,
entries of an `enum`) and to the value (a message shows it). So each such step is charged for both before it
begins, and the check stops when its budget is used up, however the steps multiply.
"""

from collections.abc import Iterator
from typing import Any, cast

MOST_UNITS = 5_000
"""A unit is a few microseconds, so a check delays other work by a few hundredths of a second at most."""

MOST_NODES = 5_000
_NODES_PER_UNIT = 20
_COMPARED_NODES_PER_UNIT = 5
_CHARACTERS_PER_NODE = 50
_MOST_INTEGER_BITS = 64
_COMPARED = {"enum", "const"}

# What the library looks up by searching the whole schema instead of following a path.
_SEARCHED = {"$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor"}


class TooMuchWork(Exception):
    """A check costs more than its budget."""


class Unlimited:
    """For a process of its own: the system limits it."""

    def charge(self, keyword: str, value: Any) -> None:
        """Counts nothing."""


class Budget:
    """What is left for one check."""

    def __init__(self, schema: Any, value: Any) -> None:
        self._schema_nodes = sum(size for _, size in _nodes(schema, is_schema=True))
        # Each container's size with everything in it. The ids belong to parts of `value`, which lives on.
        self._sizes: dict[int, int] = {}
        self._measure(value)
        self._left = MOST_UNITS

    def charge(self, keyword: str, value: Any) -> None:
        """Pays for one step, before it begins."""
        self._left -= 1 + (self._schema_nodes + self._size(value)) // _NODES_PER_UNIT
        if keyword in _COMPARED and isinstance(value, dict | list):
            self._left -= self._schema_nodes // _COMPARED_NODES_PER_UNIT
        if self._left < 0:
            raise TooMuchWork

    def _size(self, value: Any) -> int:
        return self._sizes[id(value)] if id(value) in self._sizes else _own_size(value)

    def _measure(self, value: Any) -> None:
        parts = list(_nodes(value, is_schema=False))
        for part, size in reversed(parts):  # what a container has comes after it
            if children := _children(part):
                self._sizes[id(part)] = size + sum(map(self._size, children))


def _nodes(value: Any, *, is_schema: bool) -> Iterator[tuple[Any, int]]:
    """Every part of a value with its own size, a container before its contents; TooMuchWork for many."""
    left = MOST_NODES
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if is_schema and isinstance(part, dict):
            _refuse_searches(cast("dict[Any, Any]", part), is_root=part is value)
        size = _own_size(part)
        left -= size
        if left < 0:
            raise TooMuchWork
        yield part, size
        waiting.extend(_children(part))


def _own_size(part: Any) -> int:
    """The size of a part without what it contains."""
    if isinstance(part, str):
        return 1 + len(part) // _CHARACTERS_PER_NODE
    if isinstance(part, dict):
        names = cast("dict[Any, Any]", part)
        return 1 + len(names) + sum(len(str(name)) for name in names) // _CHARACTERS_PER_NODE
    if isinstance(part, int) and part.bit_length() > _MOST_INTEGER_BITS:
        return MOST_NODES
    return 1


def _children(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [*cast("dict[Any, Any]", part).values()]
    return cast("list[Any]", part) if isinstance(part, list) else []


def _refuse_searches(schema: dict[Any, Any], *, is_root: bool) -> None:
    ref = schema.get("$ref")
    is_path = not isinstance(ref, str) or ref == "#" or ref.startswith("#/")
    if not is_path or not _SEARCHED.isdisjoint(schema) or ("$id" in schema and not is_root):
        raise TooMuchWork
