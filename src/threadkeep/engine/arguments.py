"""Validates a tool call's arguments against the tool's schema.

A schema is untrusted text. Validation must end soon, fetch nothing and block nobody, so it skips patterns,
which can take forever, and counts its steps. A call whose schema is broken or takes too long is not rejected.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any

from threadkeep.ports.tools import Tool

log = logging.getLogger("threadkeep.engine")

MOST_STEPS = 4_000
MOST_PROBLEMS = 3
MOST_PROBLEM_CHARACTERS = 300

_WITH_PATTERNS = {"pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"}
_Check = Callable[..., Iterator[Any] | None]
_steps: ContextVar[Iterator[int]] = ContextVar("steps")


def problem_with(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, in words that help the model fix them; None if they are valid."""
    problem = problem_with_value(tool.input_schema, arguments, f"{tool.name} of {tool.server}")
    return problem and f"The arguments don't match the tool's schema. {problem}"


def problem_with_value(schema: Mapping[str, Any], value: Any, name: str = "an answer") -> str | None:
    """Where a value doesn't match a schema; None if it does, or if that can't be determined."""
    _steps.set(iter(range(MOST_STEPS)))
    try:
        errors = list(islice(_errors(schema, value), MOST_PROBLEMS))
    except Exception as exc:  # noqa: BLE001 - whatever a stranger's schema can cause
        log.warning("can't check the schema of %s: %s", name, type(exc).__name__)
        return None
    problems = (f"{error.json_path}: {error.message}"[:MOST_PROBLEM_CHARACTERS] for error in errors)
    return "; ".join(problems) or None


def _errors(schema: Mapping[str, Any], arguments: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slow to load
    from referencing import Registry  # noqa: PLC0415 - slow to load

    kind = _bounded(validators.validator_for(schema, default=Draft202012Validator))
    # An empty registry of its own keeps it from fetching anything.
    registry: Any = Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return kind(_without_versions(schema), registry=registry).iter_errors(arguments)


@cache
def _bounded(kind: Any) -> Any:
    """A validator class that counts its steps."""
    from jsonschema import validators  # noqa: PLC0415 - slow to load

    checks = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    others = checks.get("additionalProperties", _pass)

    def check_others(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any] | None:
        return None if "patternProperties" in schema else others(validator, value, instance, schema)

    extend: Any = validators.extend  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return extend(
        kind, {**checks, "additionalProperties": check_others, **dict.fromkeys(_WITH_PATTERNS, _pass)}
    )


def _counted(check: _Check) -> _Check:
    def run(*details: Any) -> Iterator[Any] | None:
        if next(_steps.get(), None) is None:
            raise TimeoutError("too many validation steps")
        return check(*details)

    return run


def _pass(*details: Any) -> None:
    pass


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
