"""An owner's rules for tools: which may run, and what running one twice would do."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.mcp import AGENT, CLIENT, OWN_SERVERS, SERVER_NAME
from threadkeep.domain.text import check_storable

MOST_RULES = 500
MOST_TOOL_NAME = 128
ALL = "*"


class ToolAccess(Choice):
    """Whether a tool runs freely, only when the user allows it, or never."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class ToolEffect(Choice):
    """What a call does: it only reads, has the same effect however often it runs, or more each time."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    WRITE = "write"

    @property
    def is_repeatable(self) -> bool:
        """Whether a call may run again if it's unknown whether it took effect."""
        return self is not ToolEffect.WRITE


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for a tool, for all tools of a server, or for all; None leaves a property open."""

    access: ToolAccess | None = None
    effect: ToolEffect | None = None


Rules = Mapping[str, ToolRule]
"""Rules by `server.tool`, `server.*` or `*`; the most precise one counts, separately for each property.

`*` means the agent's tools, not those that a client brings and runs itself: `client.*` does.
"""


def check_rules(names: Collection[str]) -> None:
    """Refuses too many rules, and names that don't match a tool, a server or all."""
    if len(names) > MOST_RULES:
        raise InvalidRequest(f"An agent can have at most {MOST_RULES} tool rules.", param="settings.tools")
    for name in names:
        _check_name(name)


def access_of(rules: Rules, server: str, tool: str) -> ToolAccess:
    """Whether a tool may run; it may if no rule says otherwise."""
    found = (rule.access for rule in _rules_for(rules, server, tool) if rule.access)
    return next(found, ToolAccess.ALLOW)


def effect_of(rules: Rules, server: str, tool: str) -> ToolEffect | None:
    """What a call does, if a rule says so."""
    return next((rule.effect for rule in _rules_for(rules, server, tool) if rule.effect), None)


def rules_without_server(rules: Iterable[str], servers: Collection[str]) -> list[str]:
    """The rules that change nothing: their server is neither one of these nor one of ours.

    They are no error, because a server can be added later. But if the name is mistyped, the tools that an
    "ask" means run unasked.
    """
    known = {*servers, *OWN_SERVERS, CLIENT, AGENT}
    return [name for name in rules if name != ALL and _server_of(name) not in known]


def without_server(rule: str) -> str:
    """What to say about such a rule."""
    return f"{rule} changes nothing, because the agent has no MCP server {_server_of(rule)}"


def _server_of(rule: str) -> str:
    return rule.partition(".")[0]


def _rules_for(rules: Rules, server: str, tool: str) -> list[ToolRule]:
    names = (f"{server}.{tool}", f"{server}.{ALL}", *(() if server == CLIENT else (ALL,)))
    return [rules[name] for name in names if name in rules]


def _check_name(name: str) -> None:
    server, _, tool = name.partition(".")
    if name != ALL and not (SERVER_NAME.fullmatch(server) and 0 < len(tool) <= MOST_TOOL_NAME):
        raise InvalidRequest(
            "Write a rule for one tool (`server.tool`), for a server's tools (`server.*`) or for all "
            "tools (`*`).",
            param=f"settings.tools.{name[:MOST_TOOL_NAME]}",
        )
    check_storable(name, "settings.tools")
