"""Tools that a model asks for: reading what it wrote, and writing it back."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from threadkeep.domain.ids import new_uuid
from threadkeep.domain.text import storable
from threadkeep.gateways.refusals import Unreadable
from threadkeep.gateways.wire import decode
from threadkeep.ports.gateway import ModelRequest, ToolSpec, ToolUse, ToolUseBlock

MOST_NAME_CHARACTERS = 64

_UNSENDABLE = re.compile(r"[^a-zA-Z0-9_-]")
_decoder = msgspec.json.Decoder[Any]()


class ToolUses:
    """Makes the calls of one answer, each with an id that the request does not have yet."""

    def __init__(self, request: ModelRequest) -> None:
        self._taken = {
            block.id
            for message in request.messages
            for block in message.blocks
            if isinstance(block, ToolUseBlock)
        }

    def make(self, wanted_id: str, name: str, arguments: str | Mapping[str, Any]) -> ToolUse:
        """A call as the model asked for it; arguments that cannot be read become its problem."""
        use_id = storable(wanted_id)
        if not use_id or use_id in self._taken:
            use_id = "call_" + new_uuid().replace("-", "")
        self._taken.add(use_id)
        read = _read_arguments(arguments) if isinstance(arguments, str) else arguments
        if read is None:
            return ToolUse(use_id, storable(name), {}, "The arguments are not a JSON object.")
        return ToolUse(use_id, storable(name), read)


def sendable_name(name: str) -> str:
    """A name that every provider takes back: a model may have asked for a tool that it made up."""
    return _UNSENDABLE.sub("_", name)[:MOST_NAME_CHARACTERS] or "unknown"


def input_schema(tool: ToolSpec) -> Mapping[str, Any]:
    """A tool's schema as every provider takes it: an object, with its properties even where it has none."""
    least: dict[str, Any] = {"type": "object", "properties": {}}
    return least | dict(tool.input_schema)


def _read_arguments(text: str) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        value = decode(_decoder, text.encode("utf-8", "replace"))
    except Unreadable:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
