"""Tools that the client runs: a request brings them, the model calls them, the client sends the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CLIENT_SERVER = "client"
"""The server of these tools in records and rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTool:
    """A tool that a client offers and runs; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
