"""Validates a value against a schema: the only module that uses the library.

A schema is untrusted text. Validation fetches nothing, and skips patterns: a pattern can take forever, and
servers write them in another dialect than ours.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any, cast

from threadkeep.ports.schemas import NOT_CHECKED
from threadkeep.schemas.sentences import sentence
from threadkeep.schemas.work import Budget, TooMuchWork, Unlimited

MOST_PROBLEMS = 3
MOST_PROBLEM_CHARACTERS = 300

_WITH_PATTERNS = {"pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"}
_Check = Callable[..., Iterator[Any] | None]
_work: ContextVar[Budget | Unlimited] = ContextVar("work")


def find_problem(schema: Mapping[str, Any], value: Any, work: Budget | Unlimited) -> str | None:
    """Where a value doesn't match a schema; None if it does, or if the schema is broken.

    TooMuchWork if the budget is used up.
    """
    _work.set(work)
    try:
        errors = list(islice(_errors(schema, value), MOST_PROBLEMS))
    except (TooMuchWork, MemoryError):
        raise
    except RecursionError:
        return NOT_CHECKED
    except Exception:  # noqa: BLE001 - whatever a stranger's schema can cause
        return None
    return " ".join(_said(error)[:MOST_PROBLEM_CHARACTERS] for error in errors) or None


def _said(error: Any) -> str:
    try:
        return sentence(error)
    except Exception:  # noqa: BLE001 - whatever a stranger's schema can cause
        return f"{error.json_path}: {error.message}."


def _errors(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slow to load
    from referencing import Registry  # noqa: PLC0415 - slow to load

    kind = _charged_kind(validators.validator_for(schema, default=Draft202012Validator))
    # An empty registry of its own keeps it from fetching anything.
    registry: Any = Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return kind(_without_versions(schema), registry=registry).iter_errors(value)


@cache
def _charged_kind(kind: Any) -> Any:
    """A validator class that pays for each step."""
    from jsonschema import validators  # noqa: PLC0415 - slow to load

    checks: dict[str, _Check] = {**kind.VALIDATORS, "uniqueItems": _check_unique}
    charged = {name: _charged(name, check) for name, check in checks.items()}
    others = charged.get("additionalProperties", _pass)

    def check_others(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any] | None:
        return None if "patternProperties" in schema else others(validator, keyword, value, schema)

    extend: Any = validators.extend  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return extend(
        kind, {**charged, "additionalProperties": check_others, **dict.fromkeys(_WITH_PATTERNS, _pass)}
    )


def _charged(name: str, check: _Check) -> _Check:
    def run(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any] | None:
        _work.get().charge(name, value)
        return check(validator, keyword, value, schema)

    return run


def _pass(*details: Any) -> None:
    pass


def _check_unique(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any]:
    """`uniqueItems` in linear time: the library compares each item with each other."""
    from jsonschema import ValidationError  # noqa: PLC0415 - slow to load

    if keyword is True and isinstance(value, list):
        items = cast("list[Any]", value)
        # As text: hashes of numbers can be made to collide, hashes of texts cannot.
        if len({json.dumps(_comparable(item), sort_keys=True) for item in items}) < len(items):
            yield ValidationError("has items that are not unique")


def _comparable(value: Any) -> Any:
    """A value whose JSON is the same for equal values: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_comparable(part) for part in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without_versions(schema: Any) -> Any:
    """The schema without its parts' `$schema` versions, which would select another kind of validator."""
    if isinstance(schema, Mapping):
        return {
            key: _without_versions(part)
            for key, part in schema.items()  # pyright: ignore[reportUnknownVariableType]
            if key != "$schema" or isinstance(part, Mapping)
        }
    if isinstance(schema, list):
        return [_without_versions(part) for part in schema]  # pyright: ignore[reportUnknownVariableType]
    return schema
