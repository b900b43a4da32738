"""Which MCP servers an agent has, and which of them may be saved and run.

Three sources are merged: the system's own server, which every agent has, the built-in ones, and those that
the agent's owner has added. An owner adds a program on our machine or an address that we connect to, so each
is checked when it is saved, and again before it runs.
"""

from collections.abc import Collection, Mapping, Sequence

from threadkeep.domain.agent import Agent
from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.errors import (
    Forbidden,
    InvalidRequest,
    McpCommandNotAllowed,
    McpConfigInvalid,
    McpNameReserved,
)
from threadkeep.domain.mcp import (
    CLIENT,
    PROMPTX,
    RETRIEVER,
    McpServer,
    RemoteServer,
    ServerSource,
    StdioServer,
)
from threadkeep.domain.mcp import OWN_SERVERS as NAMES_OF_OURS
from threadkeep.domain.secret import Secret
from threadkeep.domain.user import User
from threadkeep.mcp.policy import check_remote, check_stdio
from threadkeep.networks import Network
from threadkeep.ports.mcp import ListedServer

OWN_SERVERS = (
    ListedServer(PROMPTX, ServerSource.SYSTEM),
    ListedServer(RETRIEVER, ServerSource.BUILTIN),
)
# Those, and the server names that records show for our other tools.
RESERVED_NAMES = NAMES_OF_OURS | {CLIENT, "system", "threadkeep"}


class Catalog:
    """An agent's servers, and which of them may be saved and run."""

    def __init__(
        self,
        allowed_commands: Collection[str],
        *,
        stdio_needs_admin: bool,
        allow_private: bool,
        denied_networks: Sequence[Network] = (),
    ) -> None:
        self._allowed_commands = allowed_commands
        self._stdio_needs_admin = stdio_needs_admin
        self._allow_private = allow_private
        self._denied_networks = denied_networks

    def merged(self, agent: Agent) -> Sequence[ListedServer]:
        """The system's, the built-in and the owner's own servers, in this order."""
        own = agent.settings.mcp_servers.items()
        return (*OWN_SERVERS, *(ListedServer(name, ServerSource.USER, server) for name, server in own))

    def check(self, user: User, servers: Mapping[str, McpServer], kept: Mapping[str, McpServer]) -> None:
        """Refuses servers that this user may not save; unchanged ones are accepted.

        McpConfigInvalid, McpCommandNotAllowed, McpNameReserved or Forbidden.
        """
        for name, server in servers.items():
            if kept.get(name) == server:
                continue
            try:
                self._check_one(user, name, server)
            except (McpConfigInvalid, McpCommandNotAllowed, McpNameReserved, Forbidden) as exc:
                place = f"settings.mcpServers.{name}"
                raise type(exc)(exc.message, param=f"{place}.{exc.param}" if exc.param else place) from None

    def check_remote_agent(self, remote: RemoteAgent | None, kept: RemoteAgent | None) -> None:
        """Refuses the address or the headers of an agent on another server: InvalidRequest.

        An unchanged one is accepted.
        """
        if remote is None or remote == kept:
            return
        try:
            self._check_address(remote.url, remote.headers)
        except McpConfigInvalid as exc:
            raise InvalidRequest(exc.message, param=f"engine.{exc.param}") from None

    def problem(self, name: str, server: McpServer) -> str | None:
        """Why a saved server may not run: the operator may have tightened the rules since, or a later version
        have reserved its name.
        """
        try:
            _check_name(name)
            self._check_rules(server)
        except (McpConfigInvalid, McpCommandNotAllowed, McpNameReserved) as exc:
            return exc.message
        return None

    def _check_one(self, user: User, name: str, server: McpServer) -> None:
        _check_name(name)
        if isinstance(server, StdioServer):
            self._check_may_run(user)
        self._check_rules(server)

    def _check_may_run(self, user: User) -> None:
        if self._stdio_needs_admin and not user.is_admin:
            raise Forbidden("Only an admin can save a server that runs a program on this machine.")
        if not user.may_run_programs:
            raise Forbidden(
                "To save a server that runs a program, you need this server's token. Run `threadkeep open` "
                "to open the page with it, or `threadkeep token` to print it."
            )

    def _check_rules(self, server: McpServer) -> None:
        if isinstance(server, StdioServer):
            check_stdio(server, self._allowed_commands)
        elif isinstance(server, RemoteServer):
            self._check_address(server.url, server.headers)

    def _check_address(self, url: str, headers: Mapping[str, Secret]) -> None:
        check_remote(url, headers, allow_private=self._allow_private, denied=self._denied_networks)


def _check_name(name: str) -> None:
    if name.lower() in RESERVED_NAMES:
        raise McpNameReserved(f"`{name}` is reserved for a built-in server; choose another name.")
