"""What an agent's owner says of tools: which may run, and what running one twice would do."""

from collections.abc import Mapping
from dataclasses import dataclass

from threadkeep.domain.choice import Choice


class ToolAccess(Choice):
    """Whether a tool runs freely, only when the user allows it, or never."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class ToolEffect(Choice):
    """What a call does: nothing but read, the same however often it runs, or more each time."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    WRITE = "write"

    @property
    def is_repeatable(self) -> bool:
        """Whether a call may run again when nobody knows whether it took effect."""
        return self is not ToolEffect.WRITE


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What is said of a tool, of all tools of a server, or of all; None says nothing."""

    access: ToolAccess | None = None
    effect: ToolEffect | None = None


Rules = Mapping[str, ToolRule]
"""Rules by `server.tool`, `server.*` or `*`; the most precise one counts, for each of the two by itself."""


def access_of(rules: Rules, server: str, tool: str) -> ToolAccess:
    """Whether a tool may run; what nobody spoke of may."""
    found = (rule.access for rule in _rules_for(rules, server, tool) if rule.access)
    return next(found, ToolAccess.ALLOW)


def effect_of(rules: Rules, server: str, tool: str) -> ToolEffect | None:
    """What a call does, where a rule says so."""
    return next((rule.effect for rule in _rules_for(rules, server, tool) if rule.effect), None)


def _rules_for(rules: Rules, server: str, tool: str) -> list[ToolRule]:
    names = (f"{server}.{tool}", f"{server}.*", "*")
    return [rules[name] for name in names if name in rules]
