"""What comes from outside, decoded: within limits, or refused with the field named."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request

from threadkeep.choices import with_choices
from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge

T = TypeVar("T")

MOST_NESTING = 100  # far below what Python or a database can take, far above what anybody means

_PLACE = re.compile(r" - at `(?:key in )?\$?\.?([^`]*)`$")
_FIELD = re.compile(r"field `([^`]+)`")


async def read_body(request: Request, most: int) -> bytes:
    """The request's body, or PayloadTooLarge as soon as it is known to be."""
    length = request.headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in request.headers and request.scope["http_version"] < "2":
        return b""
    too_large = PayloadTooLarge(f"A request body may have at most {most} bytes.", details={"most": most})
    if length.isdecimal() and int(length) > most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
    except ClientDisconnect as exc:
        raise InvalidRequest("The connection was closed before the body was complete.") from exc
    return b"".join(parts)


def decode_body(raw: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """A JSON body as its Struct; no body at all counts as an empty object."""
    try:
        decoded = decoder.decode(raw or b"{}")
    except msgspec.ValidationError as exc:
        raise refused(exc, decoder.type) from exc
    except msgspec.DecodeError as exc:
        raise InvalidRequest(f"The body is not valid JSON: {exc}.") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequest("The body is not valid UTF-8.") from exc
    except RecursionError as exc:
        raise _too_deep() from exc
    if raw.count(b"[") + raw.count(b"{") > MOST_NESTING:
        _refuse_deep(msgspec.json.decode(raw))
    if b"\\u0000" in raw:
        _refuse_nul(msgspec.json.decode(raw))
    return decoded


def decode_query(request: Request, struct: type[T]) -> T:
    """The query string as its Struct."""
    raw: bytes = request.scope["query_string"]
    given = dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True)) if raw else {}
    if b"%00" in raw:
        _refuse_nul(given)
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as exc:
        raise refused(exc, struct) from exc


def refused(error: msgspec.ValidationError, kind: Any) -> InvalidRequest:
    """A validation error of a `kind` with the field it is about."""
    text = str(error)
    place = _PLACE.search(text)
    named = _FIELD.search(text)
    parts = [place[1] if place else "", named[1] if named else ""]
    message = with_choices(text[: place.start()], kind, place[1]) if place else text
    return InvalidRequest(f"{message}.", param=".".join(filter(None, parts)) or None)


def _refuse_deep(value: Any) -> None:
    """What is nested deeper than our own functions can follow would fail later, halfway through."""
    level = [value]
    for _ in range(MOST_NESTING + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise _too_deep()


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"The body is nested too deeply; at most {MOST_NESTING} levels are taken.")


def _refuse_nul(value: Any) -> None:
    """No database keeps NUL characters in text, so they are refused before anything is done."""
    for path, text in _texts(value, ""):
        if "\x00" in text:
            raise InvalidRequest("NUL characters cannot be stored.", param=path or None)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            here = f"{path}.{key}".strip(".")
            yield here.replace("\x00", ""), str(key)  # pyright: ignore[reportUnknownArgumentType]
            yield from _texts(item, here)
    elif isinstance(value, list):
        for number, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _texts(item, f"{path}[{number}]")
