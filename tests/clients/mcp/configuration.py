"""MCP clients' configuration files, read as these clients read them."""

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

KEY = "THREADKEEP_KEY"
_GIVEN = re.compile(r"\$\{(?:env:)?THREADKEEP_KEY\}|\$\{input:threadkeep-key\}")


@dataclass(frozen=True)
class Configured:
    """The one server that a file names: its address, and the headers that the client sends to it."""

    url: str
    headers: dict[str, str]


def read(text: str, key: str) -> Configured:
    """What a client does with a file, if its user gives it this key."""
    url, headers = _server_in(text)
    return Configured(url, {name: _GIVEN.sub(key, value) for name, value in headers.items()})


def _server_in(text: str) -> tuple[str, dict[str, str]]:
    if text.startswith("["):
        (server,) = tomllib.loads(text)["mcp_servers"].values()
        assert server["bearer_token_env_var"] == KEY
        return server["url"], {"Authorization": f"Bearer ${{{KEY}}}"}
    settings: dict[str, Any] = json.loads(text)
    (server,) = settings.get("mcpServers", settings.get("servers", {})).values()
    return server["url"], server["headers"]
