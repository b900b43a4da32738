"""What is wrong with a value, in a sentence that a user or a model can act on.

The schema and the value come from outside: only the start of long ones is shown.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

MOST_NAMED = 10
MOST_SHOWN_CHARACTERS = 60

_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def sentence(error: Any) -> str:
    """A validation error of the library, in one sentence."""
    write = _SENTENCES.get(error.validator)
    written = None if write is None else write(error)
    return written or f"{_subject(error)}: {error.message}."


def _of_choices(error: Any) -> str | None:
    choices = error.validator_value
    if not isinstance(choices, list):
        return None
    allowed = _listed(map(_shown, cast("list[Any]", choices)[: MOST_NAMED + 1]))
    if not error.absolute_path:
        return f"{_shown(error.instance)} isn't one of the choices: {allowed}."
    return f"{_subject(error)} has to be one of {allowed}; it is {_shown(error.instance)}."


def _of_type(error: Any) -> str | None:
    return _must_be(error, _types(error.validator_value))


def _of_types(error: Any) -> str | None:
    """Of `anyOf` and `oneOf`, which say of most fields only that null is allowed, too."""
    parts: list[Any] = list(error.context or ())
    if not parts or any(it.validator != "type" or it.relative_path for it in parts):
        return None
    return _must_be(error, [name for it in parts for name in _types(it.validator_value)])


def _must_be(error: Any, types: list[str]) -> str | None:
    if not types:
        return None
    return f"{_subject(error)} has to be {' or '.join(types)}; it is {_shown(error.instance)}."


def _types(given: Any) -> list[str]:
    names = cast("list[Any]", given) if isinstance(given, list) else [given]
    return [_TYPES[it] for it in names if isinstance(it, str) and it in _TYPES]


def _of_missing(error: Any) -> str | None:
    required: Any = error.validator_value
    given: Any = error.instance
    if not isinstance(required, list) or not isinstance(given, Mapping):
        return None
    # One error per name, which only its message contains.
    for name in cast("list[Any]", required):
        if name not in given and error.message.startswith(repr(name)):
            return f"{_place(error, name)} is missing."
    return None


def _of_unknown(error: Any) -> str | None:
    given, schema = error.instance, error.schema
    if not isinstance(given, Mapping) or not isinstance(schema, Mapping):
        return None
    known: Any = cast("Mapping[str, Any]", schema).get("properties", {})
    extra = [name for name in cast("Mapping[str, Any]", given) if name not in known]
    if not extra:
        return None
    names = _listed(_place(error, it) for it in extra[: MOST_NAMED + 1])
    return f"{names} {'is an unknown field' if len(extra) == 1 else 'are unknown fields'}."


def _of_limit(most_or_least: str, unit: str = "") -> Callable[[Any], str]:
    def write(error: Any) -> str:
        verb, noun = ("can have", f" {unit}") if unit else ("can be", "")
        return f"{_subject(error)} {verb} {most_or_least} {_shown(error.validator_value)}{noun}."

    return write


def _of_duplicates(error: Any) -> str:
    return f"{_subject(error)} contains the same item twice."


_SENTENCES: Mapping[str, Callable[[Any], str | None]] = {
    "enum": _of_choices,
    "type": _of_type,
    "anyOf": _of_types,
    "oneOf": _of_types,
    "required": _of_missing,
    "additionalProperties": _of_unknown,
    "minimum": _of_limit("no less than"),
    "maximum": _of_limit("at most"),
    "exclusiveMinimum": _of_limit("only more than"),
    "exclusiveMaximum": _of_limit("only less than"),
    "minLength": _of_limit("no fewer than", "characters"),
    "maxLength": _of_limit("at most", "characters"),
    "minItems": _of_limit("no fewer than", "items"),
    "maxItems": _of_limit("at most", "items"),
    "uniqueItems": _of_duplicates,
}


def _subject(error: Any) -> str:
    return _place(error) if error.absolute_path else "The value"


def _place(error: Any, *more: Any) -> str:
    """Where it is: `days`, `guests[0].name`."""
    path = ""
    for step in (*error.absolute_path, *more):
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return f"`{_cut(path)}`"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(_cut(value), ensure_ascii=False)
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, Mapping) else _cut(json.dumps(value))


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join([*found[:MOST_NAMED], "and more"] if len(found) > MOST_NAMED else found)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN_CHARACTERS else f"{text[:MOST_SHOWN_CHARACTERS]}…"
