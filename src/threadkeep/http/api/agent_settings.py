"""An agent's settings in requests.

Derived from the domain's, with the same names, bounds and defaults, and described as in responses.
"""

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
from threadkeep.wire.views import AgentSettingsView

_AMOUNT = Annotated[str | float, Meta(examples=["10.00"])]
_OUTPUT = Annotated[Mapping[str, Any] | None, Meta(examples=[{"type": "object"}])]
_OWN_FORM: Mapping[str, tuple[Any, Any]] = {
    "mcp_servers": (McpServersBody, {}),
    "tools": (ToolRulesBody, {}),
    "budget_month": (_AMOUNT, "0.00"),
    "output": (_OUTPUT, None),
}
"""Settings that a request writes differently, each with its default."""
_DESCRIBED = {"mcp_servers", "tools"}
"""Of these, the ones whose forms say what requests can do."""


def _body_fields() -> Iterator[tuple[str, Any, Any]]:
    hints = get_type_hints(AgentSettings, include_extras=True)
    described = get_type_hints(AgentSettingsView, include_extras=True)
    for setting in fields(AgentSettings):
        name, default = setting.name, setting.default
        kind, text = _bounded(hints[name]), _description(described[name])
        if name in _OWN_FORM:
            kind, default = _OWN_FORM[name]
        elif name in CAPPED_SETTINGS and default is not None:
            text += f" By default {default}, or the operator's limit if that is smaller."
            kind, default = kind | UnsetType, UNSET
        yield name, (kind if name in _DESCRIBED else Annotated[kind, Meta(description=text)]), default


def _description(hint: Any) -> str:
    """What a view's field says about itself."""
    return next(it.description for it in get_args(hint)[1:] if isinstance(it, Meta) and it.description)


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
