"""MCP servers: where an agent's tools come from."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import McpConfigInvalid
from threadkeep.domain.secret import Secret, hide_secrets

PROMPTX = "promptx"
RETRIEVER = "retriever"
CHARTS = "charts"
HISTORY = "history"
RESULTS = "results"
FILES = "files"
GUIDE = "guide"
USER = "user"
CLIENT = "client"
"""The server of tools that the client runs. No other server can have this name."""
AGENT = "agent"
"""The server of a program's own functions, in records and in rules."""
OWN_SERVERS = frozenset({PROMPTX, RETRIEVER, CHARTS, HISTORY, RESULTS, FILES, GUIDE, USER})
"""The model knows these servers' tools by their bare names."""

DEFAULT_TIMEOUT_S = 60.0
MOST_SERVERS = 32

SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")

_NO_SECRETS: Mapping[str, Secret] = {}


class ServerScope(Choice):
    """Who shares one process or connection: all users of an agent, one user, or one conversation."""

    AGENT = "agent"
    USER = "user"
    CONVERSATION = "conversation"


class ServerSource(Choice):
    """Who added a server: the product for everyone, the product where needed, or the owner."""

    SYSTEM = "system"
    BUILTIN = "builtin"
    USER = "user"


class McpServer:
    """An owner's configuration of their own server: a StdioServer or a RemoteServer.

    The catalog decides which may be saved and run: that depends on the operator.
    """

    __slots__ = ()

    disabled: bool
    timeout_s: float
    scope: ServerScope
    trust_annotations: bool
    """Whether to trust the server's claims that its tools only read, or may be repeated."""

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """The values that must never be shown, by name."""
        raise NotImplementedError

    def without_secrets(self) -> "McpServer":
        """The same server without its secrets, switched off until somebody sets them again."""
        raise NotImplementedError

    def is_like(self, other: "McpServer") -> bool:
        """Whether another server uses its secrets in the same way, as far as one can tell without them."""
        return type(other) is type(self) and other.destination == self.destination

    @property
    def destination(self) -> Sequence[object]:
        """What decides where a call goes and what runs there, without its secrets."""
        raise NotImplementedError

    def hide(self, text: str) -> str:
        """A text of the server, such as an error or a log, without its secrets."""
        return hide_secrets(text, self.secrets.values())


@dataclass(frozen=True, slots=True)
class StdioServer(McpServer):
    """A program on our machine that communicates over its standard streams. A time-out of 0 means no limit.

    `cwd` is a path within the agent's workspace.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, Secret] = field(default_factory=lambda: _NO_SECRETS)
    cwd: str | None = None
    disabled: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    scope: ServerScope = ServerScope.AGENT
    trust_annotations: bool = False

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """The values of its environment."""
        return self.env

    def without_secrets(self) -> McpServer:
        """The same program without its environment, switched off."""
        return replace(self, env=_NO_SECRETS, disabled=True)

    @property
    def destination(self) -> Sequence[object]:
        """The program and how it runs."""
        return self.command, self.args, self.cwd, self.scope


@dataclass(frozen=True, slots=True)
class RemoteServer(McpServer):
    """A server on streamable HTTP. A time-out of 0 means no limit."""

    url: str
    headers: Mapping[str, Secret] = field(default_factory=lambda: _NO_SECRETS)
    disabled: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    scope: ServerScope = ServerScope.AGENT
    trust_annotations: bool = False

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """The values of its headers."""
        return self.headers

    def without_secrets(self) -> McpServer:
        """The same address without its headers, switched off."""
        return replace(self, headers=_NO_SECRETS, disabled=True)

    @property
    def destination(self) -> Sequence[object]:
        """The address and who shares the connection."""
        return self.url, self.scope


def check_server_names(names: Collection[str]) -> None:
    """Refuses too many, and names not of letters, digits, `-` and `_`: they become part of tools' names."""
    if len(names) > MOST_SERVERS:
        raise McpConfigInvalid(
            f"An agent can have at most {MOST_SERVERS} servers.", param="settings.mcpServers"
        )
    if not all(SERVER_NAME.fullmatch(name) for name in names):
        raise McpConfigInvalid(
            "A server name must have 1 to 48 characters (A-Z, a-z, 0-9, `-` and `_`) and start with a "
            "letter or digit.",
            param="settings.mcpServers",
        )


def definition_of(
    server: McpServer | None, name: str, description: str, input_schema: Mapping[str, object]
) -> str:
    """A digest of a tool and its server: of all that decides what a call does and where it goes.

    Secrets count in their sealed form, so that the digest tells nothing about them. Our own tools have no
    server.
    """
    known: list[object] = [name, description, input_schema]
    if server is not None:
        secrets = {key: secret.stored_form for key, secret in server.secrets.items()}
        known += [type(server).__name__, server.destination, secrets]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def fingerprint(tools: Iterable[tuple[str, str, Mapping[str, object]]]) -> str:
    """A hash of tools' names, descriptions and schemas, to detect changes."""
    known = sorted(tools, key=lambda tool: tool[0])
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
