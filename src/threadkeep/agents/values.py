"""Values as JSON: what steps return, what they are called with, and what identifies them."""

import hashlib
import inspect
import json
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from threadkeep.wire.programs import is_one_line

M = TypeVar("M", bound=msgspec.Struct)

MOST_RESULT_BYTES = 8 * 1024 * 1024

_DEFINITE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What encoding and decoding raise; a `UnicodeError` is a `ValueError`."""


class Unstorable(Exception):
    """A value isn't JSON; says why."""


def encode(value: object) -> bytes:
    """A value as JSON; raises Unstorable."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_as_json)
        if not is_one_line(encoded):  # a `Raw` goes in as it is
            encoded = msgspec.json.format(encoded, indent=-1)
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc
    if b"null" in encoded and value is not None:
        _refuse_nan(value)
    return encoded


def content_hash(value: object) -> str:
    """Identifies a value by its content; raises Unstorable."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_as_json)
        encoded = msgspec.json.encode(plain, order="deterministic")
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc
    if b"null" in encoded:
        _refuse_nan(value)
    return hashlib.sha256(encoded).hexdigest()


def decode(encoded: bytes | Raw, kind: Any = Any) -> Any:
    """A stored value as what the annotation says; raises Unstorable if it is something else."""
    try:
        return decoder(kind).decode(encoded)
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc


def convert(value: object, kind: Any) -> Any:
    """Plain JSON values as what the annotation says; numbers may be text, as models write them."""
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_from_json)
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc


def plain(value: object) -> Any:
    """A value as dicts, lists and what JSON has besides; raises Unstorable."""
    return msgspec.json.decode(encode(value))


def as_sent(message: M) -> M:
    """A message to the server as it would be read from a socket; raises Unstorable if it isn't valid."""
    try:
        return msgspec.json.decode(msgspec.json.encode(message), type=type(message))
    except msgspec.ValidationError as exc:
        _refuse_nan(message)
        raise Unstorable(_reason(exc)) from exc
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc


def decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    """What decodes an annotation; raises Unstorable for one that nothing can be decoded as."""
    try:
        return _decoder(kind)
    except _DEFINITE as exc:
        raise Unstorable(_reason(exc)) from exc


@lru_cache(maxsize=512)
def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind, dec_hook=_from_json)


def result_type(fn: Callable[..., Any]) -> Any:
    """What a function says that it returns; anything if it doesn't say. Raises Unstorable."""
    function = inspect.unwrap(fn)
    function = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if "return" not in getattr(function, "__annotations__", {}):
        return Any
    try:
        kind = typing.get_type_hints(function, include_extras=True)["return"]
    except (NameError, TypeError, AttributeError) as exc:
        raise Unstorable(f"its annotations can't be resolved: {exc}") from exc
    if typing.get_origin(kind) in (Awaitable, Coroutine):
        kind = typing.get_args(kind)[-1]
    return Any if isinstance(kind, typing.TypeVar) or kind is object else kind


def name_of(kind: type) -> str:
    """A class for the agent's author."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def class_of(value: object) -> str:
    """A value's class for the agent's author."""
    return name_of(type(value))


def with_article(kind: str) -> str:
    """The name of a class in a sentence: an int, a dict."""
    return f"{'an' if kind[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {kind}"


def is_structured(value: object) -> bool:
    """Whether a value has fields or items, unlike a text or a number."""
    if isinstance(value, dict | list | tuple | msgspec.Struct):
        return True
    return is_dataclass(value) or is_pydantic(value.__class__)


def is_pydantic(kind: object) -> bool:
    """Whether a class is a pydantic model. If nothing has loaded pydantic, none is."""
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None)
    return base is not None and isinstance(kind, type) and issubclass(kind, base)


def _as_json(value: Any) -> Any:
    if is_pydantic(value.__class__):
        return value.model_dump(mode="json")
    raise Unstorable(f"{with_article(class_of(value))} isn't JSON")


def _from_json(kind: type, value: Any) -> Any:
    if is_pydantic(kind):
        return cast("Any", kind).model_validate(value)
    raise TypeError(f"{with_article(name_of(kind))} can't be made from JSON")


def _refuse_nan(value: object) -> None:
    """JSON has no NaN and no infinity; they would become `null`."""
    plain_value = msgspec.to_builtins(value, str_keys=True, enc_hook=_as_json)
    try:
        json.dumps(plain_value, allow_nan=False)
    except ValueError as exc:
        raise Unstorable("JSON has no NaN and no infinity") from exc


def _reason(error: Exception) -> str:
    match error:
        case UnicodeError():
            return "a text has half of a surrogate pair"
        case RecursionError():
            return "it contains itself, or is nested too deeply"
        case _:
            return str(error)
