"""Values in columns: JSON texts to and from the domain's values."""

from collections.abc import Mapping
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def to_json(value: object) -> str:
    """A value as the JSON text that is kept."""
    return _encode(value).decode()


def to_json_or_null(value: object) -> str | None:
    """The same, where an empty or missing value is kept as NULL."""
    return to_json(value) if value else None


def to_object(text: str) -> Mapping[str, Any]:
    """A kept JSON object. Most are empty, so those are not parsed."""
    return {} if text == "{}" else _decode_object(text)


def to_value(text: str | None) -> Any:
    """A kept JSON value of any kind."""
    return None if text is None else msgspec.json.decode(text)
