"""Decodes what clients send, within limits; errors name the field."""

import asyncio
import mmap
import re
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec

from threadkeep.choices import with_choices
from threadkeep.domain.errors import InvalidRequest
from threadkeep.wire.json_shape import too_deep

T = TypeVar("T")

Content = bytes | mmap.mmap
"""A body in memory, or on the disk if it is large."""

# A longer body is decoded in a thread, so that others don't wait for it.
MOST_DECODED_AT_ONCE = 64 * 1024
MOST_SHOWN = 500

_PLACE = re.compile(r" - at `(?:key in )?\$?\.?([^`]*)`$")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # an even number of backslashes before it are text
_FIELD = re.compile(r"field `([^`]+)`")


async def decode_body_aside(raw: Content, decoder: "msgspec.json.Decoder[T]") -> T:
    """A JSON body as its Struct, decoded in a thread if it is large; its shape has been checked."""
    if len(raw) <= MOST_DECODED_AT_ONCE:
        return decode_body(raw, decoder)
    return await asyncio.to_thread(decode_body, raw, decoder)


def decode_body(raw: Content, decoder: "msgspec.json.Decoder[T]") -> T:
    """A JSON body, whose shape has been checked, as its Struct; no body counts as an empty object."""
    try:
        decoded = decoder.decode(raw or b"{}")
    except msgspec.ValidationError as exc:
        raise invalid_request(exc, decoder.type) from exc
    except msgspec.DecodeError as exc:
        raise InvalidRequest(f"The request body isn't valid JSON: {exc}.") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequest("The request body isn't valid UTF-8.") from exc
    except RecursionError as exc:
        raise too_deep() from exc
    if raw.find(b"\\u0000") >= 0 and _NUL.search(raw):
        _refuse_nul(msgspec.json.decode(raw))
    return decoded


def decode_query(raw: bytes, struct: type[T]) -> T:
    """A query string as its Struct."""
    given = dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True)) if raw else {}
    if b"%00" in raw:
        _refuse_nul(given)
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as exc:
        raise invalid_request(exc, struct) from exc


def invalid_request(error: msgspec.ValidationError, kind: Any) -> InvalidRequest:
    """A validation error of a `kind`, with its field."""
    text = str(error)
    place = _PLACE.search(text)
    named = _FIELD.search(text)
    parts = [place[1] if place else "", named[1] if named else ""]
    message = with_choices(text[: place.start()] if place else text, kind, place[1] if place else "")
    # A field's name may be as long as the body.
    return InvalidRequest(f"{_cut(message)}.", param=_cut(".".join(filter(None, parts))) or None)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _refuse_nul(value: Any) -> None:
    """Refuses NUL characters, which no database stores in text, before anything else happens."""
    place = _place_of_nul(value)
    if place is not None:
        path = "".join(reversed(place)).strip(".").replace("\x00", "")
        raise InvalidRequest("Text can't contain NUL characters.", param=_cut(path) or None)


def _place_of_nul(value: Any) -> list[str] | None:
    """The path to the first text with a NUL, in reverse; built only if there is one."""
    if isinstance(value, str):
        return [] if "\x00" in value else None
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            place = [] if "\x00" in key else _place_of_nul(item)
            if place is not None:
                return [*place, f".{key}"]
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            place = _place_of_nul(item)
            if place is not None:
                return [*place, f"[{number}]"]
    return None
