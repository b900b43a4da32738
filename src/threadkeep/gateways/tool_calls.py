"""Tools that a model asks for: parses its calls, and sends them back."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from threadkeep.gateways.encoding import decode
from threadkeep.gateways.refusals import UnreadableReply
from threadkeep.ports.gateway import ToolSpec, ToolUse

MOST_NAME_CHARACTERS = 64

_UNSENDABLE = re.compile(r"[^a-zA-Z0-9_-]")
_decoder = msgspec.json.Decoder[Any]()


def read_tool_use(use_id: str, name: str, arguments: str | Mapping[str, Any]) -> ToolUse:
    """A call as the model made it; unreadable arguments become its problem."""
    read = _read_arguments(arguments) if isinstance(arguments, str) else arguments
    if read is None:
        return ToolUse(use_id, name, {}, "The arguments are not a JSON object.")
    return ToolUse(use_id, name, read)


def sendable_name(name: str) -> str:
    """A name that every provider accepts back: a model may have invented a tool."""
    return _UNSENDABLE.sub("_", name)[:MOST_NAME_CHARACTERS] or "unknown"


def input_schema(tool: ToolSpec) -> Mapping[str, Any]:
    """A tool's schema in the form that every provider accepts: an object with properties, even if empty."""
    least: dict[str, Any] = {"type": "object", "properties": {}}
    return least | dict(tool.input_schema)


def _read_arguments(text: str) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        value = decode(_decoder, text.encode("utf-8", "replace"))
    except UnreadableReply:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
