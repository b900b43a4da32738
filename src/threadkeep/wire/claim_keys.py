"""Keys of what programs claim, as journals have them: `scope/kind:name/hash of what is asked/number`.

The key of an agent that another one runs is the scope of what that does.
"""

import re

AGENT_END = "/agent_end//1"
"""What the key of an agent's end has after the key of its beginning."""

_AGENT = re.compile(r"/?agent:([^/]+)/[^/]+/([0-9]+)")


def describe_key(key: str) -> str:
    """A claim for its program's author: its scope and name, and which of the same it is."""
    scope, kind, _, number = key.rsplit("/", 3)
    name = "the end" if kind == "agent_end" else kind.partition(":")[2] or kind
    scope = _AGENT.sub(_agent, scope).removeprefix("/")
    name = f"{scope}/{name}" if scope else name
    return name if number == "1" else f"{name} ({number})"


def _agent(found: re.Match[str]) -> str:
    name, number = found.groups()
    return f"/{name}" if number == "1" else f"/{name} ({number})"
