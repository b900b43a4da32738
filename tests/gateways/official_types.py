"""The official clients' own types of a request: whether a body has that shape, with nothing else in it.

The clients take seconds to load, so that only who asks for the types does it. Anthropic's no longer knows
`temperature`, which the API still takes of older models.
"""

import types
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

_LISTS = (list, Iterable)


def check_anthropic_type(body: object) -> None:
    """Raises AssertionError where Anthropic's client would not take the body."""
    problem = misfit(body, _anthropic_type())
    assert problem is None, problem


def check_openai_type(body: object) -> None:
    """Raises AssertionError where OpenAI's client would not take the body."""
    problem = misfit(body, _openai_type())
    assert problem is None, problem


def check_responses_type(body: object) -> None:
    """Raises AssertionError where OpenAI's client would not take the body as one of the Responses API."""
    problem = misfit(body, _responses_type())
    assert problem is None, problem


@cache
def _anthropic_type() -> type:
    """What Anthropic's client takes for a streamed message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of at import is not ours
        from anthropic.types.message_create_params import MessageCreateParamsStreaming  # noqa: PLC0415

    return MessageCreateParamsStreaming


@cache
def _openai_type() -> type:
    """What OpenAI's client takes for a streamed chat completion."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from openai.types.chat.completion_create_params import (  # noqa: PLC0415
            CompletionCreateParamsStreaming,
        )

    return CompletionCreateParamsStreaming


@cache
def _responses_type() -> type:
    """What OpenAI's client takes for a streamed response."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from openai.types.responses.response_create_params import (  # noqa: PLC0415
            ResponseCreateParamsStreaming,
        )

    return ResponseCreateParamsStreaming


def misfit(value: object, expected: Any, where: str = "body") -> str | None:
    """Where a JSON value does not have the shape of a type; None where it has."""
    if is_typeddict(expected):
        return _misfit_of_fields(value, expected, where)
    origin, inner = get_origin(expected), get_args(expected)
    if origin in (Annotated, Required, NotRequired):
        return misfit(value, inner[0], where)
    if origin in (Union, types.UnionType):
        misfits = [misfit(value, choice, where) for choice in inner]
        return None if None in misfits else f"{where}: {value!r} is none of {[*map(_name, inner)]}"
    if origin is Literal:
        return None if value in inner else f"{where}: {value!r} is not one of {inner}"
    if origin is not None and issubclass(origin, Mapping):
        return None if isinstance(value, dict) else f"{where}: must be an object"
    if origin in _LISTS or (origin is not None and issubclass(origin, Iterable)):
        return _misfit_of_entries(value, inner[0], where)
    return _misfit_of_scalar(value, expected, where)


def _misfit_of_fields(value: object, expected: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where}: must be an object"
    fields, known = cast("dict[str, object]", value), _fields(expected)
    if unknown := fields.keys() - known.keys():
        return f"{where}: {_name(expected)} has no {sorted(unknown)}"
    if missing := _required(expected) - fields.keys():
        return f"{where}: {_name(expected)} needs {sorted(missing)}"
    misfits = (misfit(inner, known[name], f"{where}.{name}") for name, inner in fields.items())
    return next((found for found in misfits if found), None)


def _misfit_of_entries(value: object, expected: Any, where: str) -> str | None:
    if not isinstance(value, list):
        return f"{where}: must be a list"
    entries = cast("list[object]", value)
    misfits = (misfit(entry, expected, f"{where}.{at}") for at, entry in enumerate(entries))
    return next((found for found in misfits if found), None)


def _misfit_of_scalar(value: object, expected: Any, where: str) -> str | None:
    if expected is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif expected is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(expected, type) and isinstance(value, expected)
    return None if fits else f"{where}: {value!r} is no {_name(expected)}"


@cache
def _fields(expected: Any) -> Mapping[str, Any]:
    return get_type_hints(expected, include_extras=True)


@cache
def _required(expected: Any) -> frozenset[str]:
    """Not `__required_keys__` alone: annotations that are texts have hidden `Required` from it."""
    marked = {name for name, hint in _fields(expected).items() if get_origin(hint) is Required}
    return frozenset(marked | expected.__required_keys__)


def _name(expected: Any) -> str:
    return getattr(expected, "__name__", str(expected))
