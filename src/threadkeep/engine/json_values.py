"""Normalizes JSON values from models and tools, so that every database and API accepts them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MOST_LEVELS = 200
MOST_INTEGER_BITS = 8192


class TooDeep(Exception):
    """A value is nested too deeply."""


def clean(value: Any, levels: int = MOST_LEVELS) -> Any:
    """A JSON value with everything replaced that JSON doesn't support."""
    # The most common first, and no `match`: a tool may return hundreds of thousands of small values.
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= MOST_INTEGER_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (dict, list, tuple, Mapping)):
        if not levels:
            raise TooDeep
        return _inside(value, levels - 1)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, msgspec.Raw):
        return value  # JSON that was checked when it was read
    return _text(str(value))


def _inside(value: Mapping[Any, Any] | Sequence[Any], levels: int) -> Any:
    if isinstance(value, Mapping):
        return {_text(str(key)): clean(item, levels) for key, item in value.items()}
    return [clean(item, levels) for item in value]


def _text(text: str) -> str:
    """A text without lone surrogates. A NUL stays: JSON writes it in six plain characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
