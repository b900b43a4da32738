"""Column values: JSON texts to and from domain values."""

from collections.abc import Mapping
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def to_json(value: object) -> str:
    """A value as the JSON text to store."""
    return _encode(value).decode()


def to_json_or_null(value: object) -> str | None:
    """The same, with NULL for an empty or missing value."""
    return to_json(value) if value else None


def to_object(text: str) -> Mapping[str, Any]:
    """A stored JSON object. Most are empty and need no parsing."""
    return {} if text == "{}" else _decode_object(text)


def to_value(text: str | None) -> Any:
    """A stored JSON value of any kind."""
    return None if text is None else msgspec.json.decode(text)
