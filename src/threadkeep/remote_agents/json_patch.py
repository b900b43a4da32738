"""JSON Patch (RFC 6902): the changes that an agent reports of its state."""

import copy
from collections.abc import Sequence
from typing import Any, cast

import msgspec

MOST_COPIED_BYTES = 2 * 1024 * 1024
"""How much the operations `copy` of one run may add: each could double the state."""


class PatchRefused(Exception):
    """A change that doesn't fit what it is to change."""


class Patcher:
    """Applies the changes of one run."""

    def __init__(self) -> None:
        self._copied = 0

    def apply(self, document: Any, operations: Sequence[Any]) -> Any:
        """The changed document; the given one may change, too. Raises PatchRefused."""
        for operation in operations:
            if not isinstance(operation, dict):
                raise PatchRefused("an operation is an object")
            document = self._apply(document, cast("dict[str, Any]", operation))
        return document

    def _apply(self, document: Any, it: dict[str, Any]) -> Any:
        path = _steps(it.get("path"))
        match it.get("op"):
            case "add":
                return _add(document, path, it.get("value"))
            case "replace":
                return _replace(document, path, it.get("value"))
            case "remove":
                return _remove(document, path)
            case "move":
                source = _steps(it.get("from"))
                if source == path[: len(source)] and source != path:
                    raise PatchRefused("a value can't be moved into itself")
                value = _at(document, source)
                return _add(_remove(document, source), path, value)
            case "copy":
                return _add(document, path, self._copy(_at(document, _steps(it.get("from")))))
            case "test":
                if _at(document, path) != it.get("value"):
                    raise PatchRefused("a test failed")
                return document
            case _:
                raise PatchRefused("the operation isn't known")

    def _copy(self, value: Any) -> Any:
        self._copied += len(msgspec.json.encode(value))
        if self._copied > MOST_COPIED_BYTES:
            raise PatchRefused("too much is copied")
        return copy.deepcopy(value)


def _steps(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchRefused("a path begins with a slash")
    return [it.replace("~1", "/").replace("~0", "~") for it in pointer.split("/")[1:]]


def _at(document: Any, path: Sequence[str]) -> Any:
    for step in path:
        document = _child(document, step)
    return document


def _child(parent: Any, step: str) -> Any:
    if isinstance(parent, dict) and step in parent:
        return cast("dict[str, Any]", parent)[step]
    if isinstance(parent, list):
        items = cast("list[Any]", parent)
        return items[_index(step, len(items) - 1)]
    raise PatchRefused("a path leads nowhere")


def _index(step: str, most: int) -> int:
    if not (step.isascii() and step.isdigit()) or len(step) > 9 or (step != "0" and step[0] == "0"):
        raise PatchRefused("a place in a list is a number")
    if (index := int(step)) > most:
        raise PatchRefused("a path leads nowhere")
    return index


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        items = cast("list[Any]", parent)
        items.insert(len(items) if last == "-" else _index(last, len(items)), value)
    else:
        raise PatchRefused("a path leads nowhere")
    return document


def _replace(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    _child(parent, last)
    if isinstance(parent, list):
        cast("list[Any]", parent)[int(last)] = value
    else:
        parent[last] = value
    return document


def _remove(document: Any, path: Sequence[str]) -> Any:
    if not path:
        return None
    parent, last = _at(document, path[:-1]), path[-1]
    _child(parent, last)
    if isinstance(parent, list):
        del cast("list[Any]", parent)[int(last)]
    else:
        del parent[last]
    return document
