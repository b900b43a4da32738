"""An agent's settings in requests: derived from the domain's, with the same names, bounds and defaults."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.domain.agent import AgentSettings, Bounds
from threadkeep.domain.caps import CAPPED_SETTINGS
from threadkeep.http.api.mcp_servers import McpServersBody
from threadkeep.http.api.tool_rules import ToolRulesBody

_AMOUNT = Annotated[str | float, Meta(description="A decimal number; 0 means no limit.", examples=["10.00"])]
_OWN_FORM: Mapping[str, tuple[Any, Any]] = {
    "mcp_servers": (McpServersBody, {}),
    "tools": (ToolRulesBody, {}),
    "budget_month": (_AMOUNT, "0.00"),
}
"""Settings that a request writes differently, each with its default."""


def _body_fields() -> Iterator[tuple[str, Any, Any]]:
    hints = get_type_hints(AgentSettings, include_extras=True)
    for setting in fields(AgentSettings):
        name, default = setting.name, setting.default
        if name in _OWN_FORM:
            yield name, *_OWN_FORM[name]
        elif name in CAPPED_SETTINGS and default is not None:
            by_default = f"By default {default}, or the operator's limit if that is smaller."
            yield name, Annotated[_bounded(hints[name]), Meta(description=by_default)] | UnsetType, UNSET
        else:
            yield name, _bounded(hints[name]), default


def _bounded(hint: Any) -> Any:
    """A type with its bounds in msgspec's terms."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        metas = [Meta(ge=it.least, le=it.most) for it in notes if isinstance(it, Bounds)]
        return Annotated[(kind, *metas)]
    match get_args(hint):
        case (inner, none) if none is NoneType:
            return _bounded(inner) | None
        case _:
            return hint


if TYPE_CHECKING:

    class AgentSettingsBody(Struct, frozen=True, kw_only=True):
        """What type checkers need to know of the class below."""

        mcp_servers: Any = {}
        tools: Any = {}

else:
    AgentSettingsBody = msgspec.defstruct(
        "AgentSettingsBody",
        _body_fields(),
        namespace={"__doc__": "An agent's limits and behavior; 0 means no limit."},
        module=__name__,
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    )
