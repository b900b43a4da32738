"""Which calls of a turn need their user's approval."""

from collections.abc import Mapping
from typing import Any

import msgspec

from threadkeep.domain.approval import Decision
from threadkeep.domain.tool_rules import Rules, ToolAccess, access_of
from threadkeep.ports.tools import Grant, Tool

Signature = tuple[str, str, str]
"""Which tool of which server a call uses, and with which arguments."""


def signature(server: str, tool_name: str, arguments: Mapping[str, object]) -> Signature:
    """Equal for calls that do the same."""
    return server, tool_name, msgspec.json.encode(arguments, order="deterministic").decode()


class ToolPermissions:
    """Which calls may run, by the owner's rules for tools and the user's approvals in the conversation.

    `unknown` are calls that may or may not have taken effect: repeating one requires approval, too.
    """

    def __init__(self, rules: Rules, unknown: frozenset[Signature]) -> None:
        self._rules = rules
        self._granted = set[Grant]()
        self._unknown = set(unknown)

    def replace_grants(self, granted: frozenset[Grant]) -> None:
        """From now on, these tools are allowed in the conversation, and no others."""
        self._granted = set(granted)

    def is_denied(self, tool: Tool) -> bool:
        """Whether a rule denies a tool."""
        return self._access(tool) is ToolAccess.DENY

    def must_ask(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether the user must decide before a call continues; a question always asks."""
        if tool.asks_user or self.is_repeated(tool, arguments):
            return True
        return self._access(tool) is ToolAccess.ASK and tool.grant not in self._granted

    def is_repeated(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether the same call may already have taken effect."""
        return signature(tool.server, tool.name, arguments) in self._unknown

    def note_unknown(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """From now on, repeating this call requires approval."""
        self._unknown.add(signature(tool.server, tool.name, arguments))

    def remember(self, tool: Tool, decision: Decision) -> None:
        """Remembers a decision that covers more than its call."""
        if decision.is_grant:
            self._granted.add(tool.grant)

    def _access(self, tool: Tool) -> ToolAccess:
        return access_of(self._rules, tool.server, tool.name)


def may_ask(rules: Rules) -> bool:
    """Whether any rule requires approval."""
    return any(rule.access is ToolAccess.ASK for rule in rules.values())
