"""The model's names for tools: providers accept 64 plain characters, and each name only once."""

import hashlib
import re
from collections.abc import Iterable

from threadkeep.ports.tools import Tool

MOST_CHARACTERS = 64

_SENDABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNSENDABLE = re.compile(r"[^a-zA-Z0-9-]+")
_HASH_CHARACTERS = 12


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Tools by the model's names for them; built-in ones first, always in the same order."""
    named: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda tool: (not tool.is_own, tool.server, tool.name)):
        named.setdefault(tool.name if tool.is_own else outside_name(tool.server, tool.name), tool)
    return named


def outside_name(server: str, tool: str) -> str:
    """The name of another server's tool: `server__tool`, or with a hash if that is unsuitable.

    It depends only on the two, so it doesn't change with the other tools. No two tools share a name: a plain
    one splits at its first `__`, and a hashed one has no `__`.
    """
    plain = f"{server}__{tool}"
    if _SENDABLE.fullmatch(plain) and plain.partition("__")[0] == server and not server.endswith("_"):
        return plain
    digest = hashlib.sha256(f"{server}\n{tool}".encode("utf-8", "replace")).hexdigest()[:_HASH_CHARACTERS]
    readable = _UNSENDABLE.sub("_", plain).strip("_")[: MOST_CHARACTERS - _HASH_CHARACTERS - 1].strip("_")
    return f"{readable}_{digest}" if readable else f"tool_{digest}"
