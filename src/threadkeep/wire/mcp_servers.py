"""Views of MCP servers: everything but the secrets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.mcp import McpServer, RemoteServer, ServerScope, ServerSource, StdioServer
from threadkeep.domain.secret import MASK
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.mcp import ServerReport, ServerState
from threadkeep.ports.tools import Tool
from threadkeep.wire.view import CompleteListView, View

Masked = Annotated[
    Mapping[str, str],
    Meta(description="The values are secrets, shown as a mask. Send the mask back to keep the value."),
]


class McpServerSettingsView(View, frozen=True, kw_only=True):
    """A server as its owner configured it: a program (`command`) or an address (`url`)."""

    command: Annotated[str | UnsetType, Meta(description="The program to start; not with `url`.")] = UNSET
    args: Annotated[
        Sequence[str] | UnsetType, Meta(description="The arguments that the program is started with.")
    ] = UNSET
    env: Masked | UnsetType = UNSET
    cwd: Annotated[str | UnsetType, Meta(description="The folder in which the program is started.")] = UNSET
    url: Annotated[
        str | UnsetType, Meta(description="The address of a remote server; not with `command`.")
    ] = UNSET
    headers: Masked | UnsetType = UNSET
    disabled: Annotated[
        bool | UnsetType, Meta(description="Whether the agent currently does without it.")
    ] = UNSET
    timeout_s: Annotated[
        float | UnsetType, Meta(description="How long one call may take, in seconds; 60 by default.")
    ] = UNSET
    scope: Annotated[
        ServerScope | UnsetType,
        Meta(description="Whether one process serves the agent, each user, or each conversation."),
    ] = UNSET
    trust_annotations: (
        Annotated[bool, Meta(description="Trust the server's hints about its tools' effects.")] | UnsetType
    ) = UNSET


class McpToolView(View, frozen=True, kw_only=True):
    """A tool that a server offers."""

    name: Annotated[str, Meta(description="The tool's name on its server.")]
    description: Annotated[str, Meta(description="What the tool does, as its server describes it.")]
    effect: Annotated[
        ToolEffect,
        Meta(
            description="What a call does according to the server. It counts if the server's annotations are "
            "trusted, unless a rule says otherwise."
        ),
    ]


class AgentToolView(McpToolView, frozen=True, kw_only=True):
    """A tool that an agent's turns may use."""

    server: Annotated[str, Meta(description="The MCP server that offers it, as rules name it.")]


class AgentToolsView(CompleteListView, frozen=True, kw_only=True):
    """An agent's tools, ours first."""

    items: Annotated[
        Sequence[AgentToolView], Meta(description="The agent's tools, those of Threadkeep first.")
    ]


class McpServerView(McpServerSettingsView, frozen=True, kw_only=True):
    """An agent's server and its status. Built-in servers are `readOnly` and have no settings."""

    name: Annotated[str, Meta(description="What the agent's settings and rules call it.")]
    source: Annotated[
        ServerSource,
        Meta(description="Who configured it: the system, Threadkeep itself, or the agent's owner."),
    ]
    read_only: Annotated[bool, Meta(description="Whether it is built in, so that it can't be changed.")]
    status: Annotated[ServerState, Meta(description="Whether it is connected, as far as is known.")]
    changed: Annotated[bool, Meta(description="Its tools have changed since the agent was last saved.")]
    error: Annotated[str | UnsetType, Meta(description="Why it doesn't work, if it doesn't.")] = UNSET
    tools: Annotated[
        Sequence[McpToolView] | UnsetType,
        Meta(description="The tools that it offered when it was last connected."),
    ] = UNSET
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
