"""Views of an agent's rules for tools."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.tool_rules import ToolAccess, ToolEffect, ToolRule
from threadkeep.wire.view import View


class ToolRuleView(View, frozen=True, kw_only=True):
    """Whether tools run freely, only with the user's approval, or never; and the effect of a call."""

    access: Annotated[
        ToolAccess | UnsetType, Meta(description="Whether it may run: `allow`, `ask` or `deny`.")
    ] = UNSET
    effect: Annotated[
        ToolEffect | UnsetType, Meta(description="What a call does: `read`, `idempotent` or `write`.")
    ] = UNSET


RulesWithoutServer = Annotated[
    Sequence[str] | UnsetType,
    Meta(
        description="The rules of `settings.tools` that change nothing, because the agent has no MCP server "
        "of that name. Left out if there are none."
    ),
]


def tool_rule_view(rule: ToolRule) -> ToolRuleView:
    """A rule as clients see it."""
    return ToolRuleView(access=rule.access or UNSET, effect=rule.effect or UNSET)
