"""JSON schemas of what functions take and return."""

import inspect
import typing
from collections.abc import Callable
from typing import Any, cast

import msgspec

from threadkeep.agents.values import is_pydantic, name_of

_TAKES_MORE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_REFERENCES = "#/$defs/{name}"


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type; raises TypeError with a sentence."""
    if is_pydantic(kind):
        return kind.model_json_schema()
    parts: dict[str, Any] = {}

    def of_pydantic(inner: type) -> dict[str, Any]:
        if not is_pydantic(inner):
            raise TypeError(f"The class {name_of(inner)} has no JSON schema.")
        schema = cast("Any", inner).model_json_schema()
        parts.update(schema.pop("$defs", {}))
        return schema

    (schema,), components = msgspec.json.schema_components(
        (kind,), ref_template=_REFERENCES, schema_hook=of_pydantic
    )
    parts.update(components)
    if set(schema) == {"$ref"}:
        schema = parts.pop(schema["$ref"].rpartition("/")[2])
    return {**schema, "$defs": parts} if parts else schema


def arguments_of(fn: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    """What a function takes, as a struct; raises TypeError with a sentence."""
    hints = _hints(fn, name)
    fields: list[Any] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in _TAKES_MORE:
            raise TypeError(f"`{name}` takes *{parameter.name}; a tool's arguments need names.")
        kind = hints.get(parameter.name, Any)
        has_default = parameter.default is not inspect.Parameter.empty
        fields.append(
            (parameter.name, kind, _default(parameter.default)) if has_default else (parameter.name, kind)
        )
    struct_name = "".join(it if it.isalnum() else "_" for it in name)
    return msgspec.defstruct(struct_name, fields, kw_only=True, forbid_unknown_fields=True)


def _hints(fn: Callable[..., Any], name: str) -> dict[str, Any]:
    function = inspect.unwrap(fn)
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", function)  # noqa: B004
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as exc:
        raise TypeError(f"The annotations of `{name}` can't be resolved: {exc}.") from exc


def _default(value: Any) -> Any:
    """A struct copies empty collections only; a factory makes each of the others."""
    if value and type(value) in (list, dict, set):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value
