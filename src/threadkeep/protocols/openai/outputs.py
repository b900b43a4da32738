"""What requests ask of a reply besides its content: JSON of a schema, or that a function is called."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.outputs.schema import check_output_schema

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""What `json_object` asks for."""


def object_or_nothing(value: Any) -> dict[str, Any]:
    """An object that a request may have, or have something else instead of."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def output_asked(kind: str | None, schema: Any, param: str, schema_param: str) -> Mapping[str, Any] | None:
    """The JSON schema that a reply is to fit, if it is to be JSON; `param` is the format's name."""
    match kind:
        case None | "text":
            return None
        case "json_object":
            return ANY_OBJECT
        case "json_schema":
            return check_output_schema(schema, schema_param)
        case _:
            raise InvalidRequest(f"`{param}.type` is text, json_object or json_schema.", param=param)


def chosen_tool(choice: Any, names: Collection[str]) -> str | None:
    """The function that the model must call, or "" for any; None: it decides."""
    if choice in (None, "auto", "none"):
        return None
    if choice == "required" and names:
        return ""
    named = object_or_nothing(choice)
    name = object_or_nothing(named.get("function")).get("name") or named.get("name")
    if name in names:
        return str(name)
    raise InvalidRequest(
        "`tool_choice` is auto, none, required, or names one of the functions in `tools`.",
        param="tool_choice",
    )
