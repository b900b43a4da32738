"""Views of MCP servers: everything but the secrets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.mcp import McpServer, RemoteServer, ServerScope, ServerSource, StdioServer
from threadkeep.domain.secret import MASK
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.mcp import ServerReport, ServerState
from threadkeep.ports.tools import Tool
from threadkeep.wire.view import View

Masked = Annotated[
    Mapping[str, str],
    Meta(description="The values are secrets, shown as a mask. Send the mask back to keep the value."),
]


class McpServerSettingsView(View, frozen=True, kw_only=True):
    """A server as its owner configured it: a program (`command`) or an address (`url`)."""

    command: str | UnsetType = UNSET
    args: Sequence[str] | UnsetType = UNSET
    env: Masked | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    headers: Masked | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    timeout_s: float | UnsetType = UNSET
    scope: ServerScope | UnsetType = UNSET
    trust_annotations: (
        Annotated[bool, Meta(description="Trust the server's hints about its tools' effects.")] | UnsetType
    ) = UNSET


class McpToolView(View, frozen=True, kw_only=True):
    """A tool that a server offers."""

    name: str
    description: str
    effect: Annotated[
        ToolEffect,
        Meta(
            description="What a call does according to the server. It counts if the server's annotations are "
            "trusted, unless a rule says otherwise."
        ),
    ]


class AgentToolView(McpToolView, frozen=True, kw_only=True):
    """A tool that an agent's turns may use."""

    server: str


class AgentToolsView(View, frozen=True, kw_only=True):
    """An agent's tools, ours first."""

    items: Sequence[AgentToolView]


class McpServerView(McpServerSettingsView, frozen=True, kw_only=True):
    """An agent's server and its status. Built-in servers are `readOnly` and have no settings."""

    name: str
    source: ServerSource
    read_only: bool
    status: ServerState
    changed: Annotated[bool, Meta(description="Its tools have changed since the agent was last saved.")]
    error: str | UnsetType = UNSET
    tools: Sequence[McpToolView] | UnsetType = UNSET
    stderr: (
        Annotated[str, Meta(description="The last lines that the program wrote to stderr.")] | UnsetType
    ) = UNSET


def server_settings_view(server: McpServer) -> McpServerSettingsView:
    """A server as its owner configured it, with masked secrets."""
    common: dict[str, Any] = {
        "disabled": server.disabled,
        "timeout_s": server.timeout_s,
        "scope": server.scope,
        "trust_annotations": server.trust_annotations,
    }
    masked = dict.fromkeys(server.secrets, MASK)
    match server:
        case StdioServer(command=command, args=args, cwd=cwd):
            return McpServerSettingsView(command=command, args=args, env=masked, cwd=cwd or UNSET, **common)
        case RemoteServer(url=url):
            return McpServerSettingsView(url=url, headers=masked, **common)
        case _:
            raise TypeError(f"{type(server).__name__} isn't a server that an owner can set")


def server_view(report: ServerReport) -> McpServerView:
    """An agent's server and its status."""
    listed, status = report.listed, report.status
    shown = server_settings_view(listed.server) if listed.server else McpServerSettingsView()
    tools = (
        McpToolView(name=tool.name, description=tool.description, effect=tool.effect)
        for tool in status.tools or ()
    )
    return McpServerView(
        name=listed.name,
        source=listed.source,
        read_only=listed.source is not ServerSource.USER,
        status=status.state,
        changed=report.changed,
        error=status.error or UNSET,
        tools=UNSET if status.tools is None else list(tools),
        stderr=status.stderr or UNSET,
        **{name: getattr(shown, name) for name in McpServerSettingsView.__struct_fields__},
    )


def agent_tools_view(tools: Iterable[Tool]) -> AgentToolsView:
    """An agent's tools."""
    return AgentToolsView(
        items=[
            AgentToolView(
                server=tool.server, name=tool.name, description=tool.description, effect=tool.effect
            )
            for tool in tools
        ]
    )
