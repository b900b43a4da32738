"""JSON values from models and tools, made such that every database and every wire takes them."""

import math
from collections.abc import Mapping
from typing import Any

MOST_LEVELS = 200
MOST_INTEGER_BITS = 8192


class TooDeep(Exception):
    """A value is nested deeper than can be read back everywhere."""


def clean(value: Any, levels: int = MOST_LEVELS) -> Any:
    """A JSON value with everything replaced that JSON does not have; all else stays as it is."""
    match value:
        case None | bool():
            return value
        case str():
            return _text(value)
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value if value.bit_length() <= MOST_INTEGER_BITS else hex(value)
        case Mapping() | list() | tuple() if not levels:
            raise TooDeep
        case Mapping():
            return {_text(str(key)): clean(item, levels - 1) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case list() | tuple():
            return [clean(item, levels - 1) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    """A text without halves of surrogate pairs. A NUL stays: JSON writes it in six plain characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
