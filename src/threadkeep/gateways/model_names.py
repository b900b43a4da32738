"""The models that a provider lists: OpenAI's and Anthropic's form, and what compatible servers make of it."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from threadkeep.ports.gateway import GatewayError

MOST_MODELS = 5000
MOST_CHARACTERS = 200


def model_names(document: bytes) -> Sequence[str]:
    """The names in a list of models; GatewayError if the document isn't one."""
    try:
        found: Any = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if isinstance(found, dict):
        fields = cast("dict[str, Any]", found)
        found = fields.get("data", fields.get("models"))
    if not isinstance(found, list):
        raise GatewayError("There is no model API at this address. Check the gateway's address.")
    names = (_name(it) for it in cast("list[object]", found)[:MOST_MODELS])
    return list(dict.fromkeys(name for name in names if name))


def _name(model: object) -> str | None:
    if not isinstance(model, dict):
        return None
    fields = cast("dict[str, Any]", model)
    name = fields.get("id") or fields.get("name")
    is_usable = isinstance(name, str) and name.isprintable() and len(name) <= MOST_CHARACTERS
    return name if is_usable else None
