"""Rules for tools over HTTP: `settings.tools` in requests."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.tool_rules import Rules, ToolAccess, ToolEffect, ToolRule, check_rules
from threadkeep.wire.decoding import invalid_request
from threadkeep.wire.tool_rules import tool_rule_view

PLACE = "settings.tools"


class ToolRuleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether tools run freely, only with the user's approval, or never; and the effect of a call."""

    access: Literal["allow", "ask", "deny"] | None = None
    effect: Literal["read", "idempotent", "write"] | None = None


# Not decoded here, so that an error can name the rule.
ToolRulesBody = Annotated[
    Any,
    Meta(
        description="Rules by `server.tool`, `server.*` or `*`; the most specific one applies.",
        extra_json_schema={
            "type": "object",
            "additionalProperties": msgspec.json.schema(ToolRuleBody)["$defs"]["ToolRuleBody"],
        },
    ),
]


def rules_to_body(rules: Rules) -> dict[str, Any]:
    """An agent's rules in the format of requests."""
    return {name: msgspec.to_builtins(tool_rule_view(rule)) for name, rule in rules.items()}


def rules_from_body(given: Any) -> Rules:
    """The rules in a request; empty ones are left out."""
    try:
        entries = msgspec.convert(given, dict[str, Any])
    except msgspec.ValidationError as exc:
        raise InvalidRequest(invalid_request(exc, dict[str, Any]).message, param=PLACE) from exc
    check_rules(entries)
    rules = {name: _rule(name, entry) for name, entry in entries.items()}
    return {name: rule for name, rule in rules.items() if rule != ToolRule()}


def _rule(name: str, entry: Any) -> ToolRule:
    try:
        body = msgspec.convert(entry, ToolRuleBody)
    except msgspec.ValidationError as exc:
        refusal = invalid_request(exc, ToolRuleBody)
        param = ".".join(filter(None, (PLACE, name, refusal.param)))
        raise InvalidRequest(refusal.message, param=param) from exc
    return ToolRule(
        access=ToolAccess(body.access) if body.access else None,
        effect=ToolEffect(body.effect) if body.effect else None,
    )
