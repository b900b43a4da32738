"""JSON as providers read and write it."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from threadkeep.gateways.refusals import UnreadableReply

T = TypeVar("T")


def _encode_other(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise NotImplementedError(f"{type(value).__name__} isn't JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_other)


def encode(value: object) -> bytes:
    """A request's body; the same value always gives the same bytes."""
    return _encoder.encode(value)


def decode(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    """A value from the wire."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_repaired(decoder, data)


def _decode_repaired(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    """Models do send lone surrogates and partial characters; the rest of the text is still good."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        return decoder.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, msgspec.DecodeError, RecursionError) as exc:
        raise UnreadableReply from exc
