"""Run tools: agents' MCP servers, how far they may reach, and what encrypts their secrets."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.documents import DocumentSettings
from threadkeep.settings.sources import secret_files, settings_file, table_secret_file
from threadkeep.settings.values import Secret, list_in

_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish", "cmd", "cmd.exe", "powershell", "pwsh"}
_PACKAGES = {"site-packages", "dist-packages"}
_CODE = Path(__file__).parents[1]


class ToolSettings(DocumentSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tools agents have, and what they may do."""

    client_tools: Annotated[
        bool,
        Meta(description="Let requests bring tools that the client itself runs, to agents that accept them."),
    ] = True
    mcp_allowed_commands: Annotated[
        tuple[str, ...],
        Meta(description="Programs allowed as agents' MCP servers, each a bare name; comma-separated."),
    ] = ("npx", "uvx")
    mcp_stdio: Annotated[
        Literal["admin", "owner"],
        Meta(description="Who can add MCP servers that run a program on this machine: admin, or any owner."),
    ] = "admin"
    mcp_sandbox: Annotated[
        Literal["auto", "require", "off"],
        Meta(
            description="Sandbox MCP servers that run a program, so that they see only their agent's folder "
            "of the data: auto (if this machine supports it), require (otherwise they don't run) or off."
        ),
    ] = "auto"
    mcp_writable: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders besides their agent's that MCP servers running a program can write to, as "
            "absolute paths; comma-separated."
        ),
    ] = ()
    mcp_readable: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders in the home folder or in /tmp that MCP servers running a program can read, "
            "as absolute paths; comma-separated. Otherwise, they see only tools there, such as ~/.nvm."
        ),
    ] = ()
    mcp_allow_private: Annotated[
        bool,
        Meta(
            description="Allow MCP servers, and servers that run agents, on loopback and private addresses."
        ),
    ] = False
    denied_networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks blocked for MCP servers, and servers that run agents, besides private "
            "ones, such as 203.0.113.0/24; comma-separated. They stay blocked with MCP_ALLOW_PRIVATE."
        ),
    ] = ()
    mcp_pass_environment: Annotated[
        tuple[str, ...],
        Meta(
            description="Environment variables to pass to MCP servers, such as HTTPS_PROXY; "
            "comma-separated. MCP servers see no others."
        ),
    ] = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "TZ")
    mcp_max_servers: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Maximum number of running MCP servers; a new one replaces the one idle the longest.",
        ),
    ] = 32
    mcp_connect_budget_s: Annotated[
        float, Meta(gt=0, le=60, description="Seconds a turn waits for its MCP servers to start.")
    ] = 10
    mcp_idle_s: Annotated[
        float, Meta(ge=1, description="Idle seconds after which an MCP server is stopped.")
    ] = 600
    promptx_command: Annotated[
        str | None,
        Meta(
            description="Command of a PromptX to run instead of the built-in one, such as `npx -y "
            "dpml-prompt mcp-server`. Each user of each agent gets a separate process."
        ),
    ] = None
    secret_key: Annotated[
        Secret,
        Meta(
            description="Key for encrypting the secrets of agents' MCP servers, at least 32 characters; with "
            "SQLite, generated in the data folder. To rotate it, list several, comma-separated: the "
            "first encrypts, all decrypt."
        ),
    ] = None

    def check_tools(self) -> None:
        """Rejects programs, networks and folders that would be unsafe."""
        for command in self.mcp_allowed_commands:
            if not _COMMAND.fullmatch(command) or command.lower() in _SHELLS:
                raise SettingsError(
                    f"THREADKEEP_MCP_ALLOWED_COMMANDS: {command!r} is a shell or not a bare name."
                )
        _ = self.networks_denied
        for folder in self.mcp_writable:
            self._check_writable(Path(folder))
        for folder in self.mcp_readable:
            self._check_readable(Path(folder))
        if self.promptx_command is not None and not self.promptx_arguments:
            raise SettingsError("THREADKEEP_PROMPTX_COMMAND must name a program.")
        if any(len(key) < 32 for key in self.secret_keys):
            raise SettingsError("THREADKEEP_SECRET_KEY needs at least 32 characters for each key.")

    def _check_readable(self, folder: Path) -> None:
        if not folder.is_absolute():
            raise SettingsError(f"THREADKEEP_MCP_READABLE: '{folder}' is not an absolute path.")
        theirs = folder.resolve()
        # A folder that contains ours is allowed: ours stay hidden in it.
        if any(theirs.is_relative_to(ours.resolve()) for ours in self.private_paths):
            raise SettingsError(
                f"THREADKEEP_MCP_READABLE: '{folder}' belongs to Threadkeep's own data or settings, which "
                "programs can't access. Choose another folder."
            )

    def _check_writable(self, folder: Path) -> None:
        if not folder.is_absolute():
            raise SettingsError(f"THREADKEEP_MCP_WRITABLE: '{folder}' is not an absolute path.")
        ours, theirs = self.data.resolve(), folder.resolve()
        if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
            raise SettingsError(
                f"THREADKEEP_MCP_WRITABLE: '{folder}' overlaps the data folder {self.data}, which programs "
                "can't access. Choose another folder."
            )
        for what, path in self._trusted_places():
            if path.is_relative_to(theirs):
                raise SettingsError(
                    f"THREADKEEP_MCP_WRITABLE: '{folder}' contains {what} {path}: a program could change "
                    "what Threadkeep runs or how it is set up. Choose another folder."
                )
        code = _CODE.resolve()
        if theirs.is_relative_to(code) or any(it in _PACKAGES for it in theirs.parts):
            raise SettingsError(
                f"THREADKEEP_MCP_WRITABLE: '{folder}' is in a folder of code. Choose another."
            )

    def _trusted_places(self) -> Iterator[tuple[str, Path]]:
        """What decides what we run."""
        yield "the working folder", Path.cwd().resolve()
        yield "the settings file", settings_file().absolute().resolve()
        for folder in (str(_CODE), sys.prefix, sys.base_prefix, *sys.path):
            if Path(folder).is_absolute():
                yield "the code in", Path(folder).resolve()

    @property
    def networks_denied(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of `denied_networks`."""
        try:
            return tuple(ip_network(name) for name in self.denied_networks)
        except ValueError as exc:
            raise SettingsError(f"THREADKEEP_DENIED_NETWORKS: {exc}.") from exc

    @property
    def mcp_environment(self) -> dict[str, str]:
        """The variables of our own environment that MCP servers get."""
        return {name: os.environ[name] for name in self.mcp_pass_environment if name in os.environ}

    @property
    def private_paths(self) -> tuple[Path, ...]:
        """What programs that we run for users may not see: our data, and files with our secrets."""
        named = (
            *(it.api_key_env for it in self.gateways.values()),
            *(it.client_secret_env for it in self.sign_in.values()),
        )
        of_tables = filter(None, (table_secret_file(it) for it in named if it))
        files = (settings_file(), Path(".env"), *secret_files().values(), *of_tables)
        database = Path(self.database.removeprefix("sqlite:///")) if self.on_sqlite else self.data
        beside = (database.with_name(f"{database.name}{end}") for end in ("", "-wal", "-shm"))
        return tuple(it.absolute() for it in (self.data, *files, *beside))

    @property
    def promptx_arguments(self) -> tuple[str, ...]:
        """The parts of `promptx_command`, quoted as in a shell; no shell is run."""
        try:
            return tuple(shlex.split(self.promptx_command or ""))
        except ValueError as exc:
            raise SettingsError(f"THREADKEEP_PROMPTX_COMMAND: {exc}.") from exc

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The keys of `secret_key`; the first encrypts."""
        return list_in(self.secret_key or "")
