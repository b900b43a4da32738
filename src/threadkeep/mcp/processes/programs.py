"""What a server gets when it runs: a folder, and as much of our environment as it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.mcp import PROMPTX, McpServer, RemoteServer, ServerScope, StdioServer
from threadkeep.domain.workspace import CACHE, Workspaces
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes.packages import launched_args
from threadkeep.mcp.processes.process import Program
from threadkeep.mcp.processes.sandbox import OPEN, Sandbox
from threadkeep.networks import Network

USER_HEADER = "Threadkeep-User-Id"
CONVERSATION_HEADER = "Threadkeep-Conversation-Id"
ROLES = ".promptx"


@dataclass(frozen=True, slots=True)
class ServerKey:
    """Identifies a server of an agent, and its user or conversation if each has its own."""

    agent_id: AgentId
    name: str
    user_id: UserId | None
    conversation_id: ConversationId | None = None

    @staticmethod
    def of(
        agent_id: AgentId,
        name: str,
        server: McpServer,
        user_id: UserId,
        conversation_id: ConversationId | None = None,
    ) -> "ServerKey":
        """The key of the server for this user and conversation; a test has no conversation."""
        match server.scope:
            case ServerScope.AGENT:
                return ServerKey(agent_id, name, None)
            case ServerScope.USER:
                return ServerKey(agent_id, name, user_id)
            case ServerScope.CONVERSATION:
                return ServerKey(agent_id, name, user_id, conversation_id)


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """What the operator gives to servers: folders, a few variables, and how far they may reach."""

    workspaces: Workspaces
    environment: Mapping[str, str]
    allow_private: bool = False
    denied_networks: Sequence[Network] = ()
    sandbox: Sandbox = OPEN
    on_program: Callable[[], None] = lambda: None
    """Called before a program starts."""
    is_token_due: Callable[[], bool] = lambda: False
    """Whether that would make the server require its token."""

    def program(self, key: ServerKey, server: StdioServer) -> Program:
        """A server's program, ready to run; creates its folder."""
        self.on_program()
        workspace = self.workspaces.of(key.agent_id)
        cwd = _folder(workspace, server.cwd)
        env = {**self.environment, "PWD": str(cwd), "PROMPTX_PROJECT_DIR": str(workspace)}
        if self.sandbox.kinds:
            env |= _private_folders(workspace)
        env |= {name: secret.reveal() for name, secret in server.env.items()}
        if key.user_id is not None:
            env["THREADKEEP_USER_ID"] = key.user_id
        if key.conversation_id is not None:
            env["THREADKEEP_CONVERSATION_ID"] = key.conversation_id
        if key.name == PROMPTX:  # the operator's own command; it may not use the folders of other users
            args, readable, writable = server.args, [workspace / ROLES], [cwd]
        else:
            args, readable, writable = launched_args(server.command, server.args), [], [workspace]
        # Our PATH, not the one in `env`: a server's owner must not choose what is hidden from it.
        path = self.environment.get("PATH")
        self._check_visible(server.command, args, path, workspace)
        wrapper = self.sandbox.wrapper(server.command, path, readable=readable, writable=writable)
        return Program(server.command, args, env, cwd, wrapper)

    def _check_visible(self, command: str, args: Sequence[str], path: str | None, workspace: Path) -> None:
        """Explains what the program itself would only report as missing."""
        for arg in args:
            named = Path(arg.rpartition("=")[2])
            is_elsewhere = named.is_absolute() and not named.is_relative_to(workspace)
            if is_elsewhere and self.sandbox.hides(named, command, path):
                raise LinkBroken(
                    f"Its argument {named} is in a folder that programs can't see. The operator can allow "
                    "reading it with THREADKEEP_MCP_READABLE, or writing with THREADKEEP_MCP_WRITABLE."
                )

    def headers(self, key: ServerKey, server: RemoteServer) -> dict[str, str]:
        """The headers of every request to a remote server."""
        headers = {name: secret.reveal() for name, secret in server.headers.items()}
        if key.user_id is not None:
            headers[USER_HEADER] = quote(key.user_id)
        if key.conversation_id is not None:
            headers[CONVERSATION_HEADER] = key.conversation_id
        return headers


def _private_folders(workspace: Path) -> dict[str, str]:
    """A program's own folders, also for what it fetches: other agents' programs don't run that."""
    cache = workspace / CACHE
    folders = {
        "HOME": workspace / ".home",
        "XDG_CACHE_HOME": cache,
        "npm_config_cache": cache / "npm",
        "TMPDIR": cache / "tmp",
    }
    try:
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise LinkBroken(f"Couldn't create its folders: {exc.strerror}.") from exc
    return {name: str(folder) for name, folder in folders.items()}


def _folder(workspace: Path, inner: str | None) -> Path:
    folder = workspace / inner if inner else workspace
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        # Checked before mkdir: a link on the way must not lead out.
        if not folder.resolve().is_relative_to(workspace.resolve()):
            raise LinkBroken("Its folder is outside the agent's workspace.")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise LinkBroken(f"Can't use its folder: {exc.strerror}.") from exc
    return folder
