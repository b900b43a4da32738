"""MCP servers over HTTP: `settings.mcpServers` as it is sent, and the test of a server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadkeep.domain.errors import McpConfigInvalid
from threadkeep.domain.mcp import (
    DEFAULT_TIMEOUT_S,
    McpServer,
    RemoteServer,
    ServerScope,
    StdioServer,
    check_server_names,
)
from threadkeep.domain.secret import MASK, Secret
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.decoding import invalid_request
from threadkeep.wire.mcp_servers import (
    AgentToolsView,
    McpServerView,
    agent_tools_view,
    server_settings_view,
    server_view,
)


class McpServerBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A server: a program (`command`) or an address (`url`), in the format of other MCP clients."""

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    disabled: bool = False
    timeout_s: Annotated[float, Meta(ge=0, le=3600)] = DEFAULT_TIMEOUT_S
    scope: Literal["agent", "user", "conversation"] = "agent"
    trust_annotations: bool = False


# Not decoded here, so that every error can name the server and has its own code.
McpServersBody = Annotated[
    Any,
    Meta(
        description="The agent's own servers by name. In `env` and `headers`, a mask keeps the stored value.",
        extra_json_schema={
            "type": "object",
            "additionalProperties": msgspec.json.schema(McpServerBody)["$defs"]["McpServerBody"],
        },
    ),
]


async def list_agent_tools(request: RequestContext, *, agent_id: str) -> AgentToolsView:
    """List the tools that an agent's turns may use, ours first. For its owner and admins.

    The tools of an MCP server are known once it has connected: test it to see them.
    """
    return agent_tools_view(await request.services.mcp_servers.tools(request.user, agent_id))


async def test_mcp_server(request: RequestContext, *, agent_id: str, name: str) -> McpServerView:
    """Connect to one of an agent's MCP servers and list its tools. For its owner and admins.

    If the connection fails, the response is still 200; `status` and `error` give the reason.
    """
    return server_view(await request.services.mcp_servers.test(request.user, agent_id, name))


def servers_to_body(servers: Mapping[str, McpServer]) -> dict[str, Any]:
    """An agent's servers in the format of requests, with masked secrets."""
    return {name: msgspec.to_builtins(server_settings_view(server)) for name, server in servers.items()}


def servers_from_body(given: Any, kept: Mapping[str, McpServer]) -> Mapping[str, McpServer]:
    """The servers in a request; a mask stands for the stored secret."""
    try:
        entries = msgspec.convert(given, dict[str, Any])
    except msgspec.ValidationError as exc:
        raise McpConfigInvalid(
            invalid_request(exc, dict[str, Any]).message, param="settings.mcpServers"
        ) from exc
    check_server_names(entries)
    return {name: _server(name, entry, kept.get(name)) for name, entry in entries.items()}


def _server(name: str, entry: Any, kept: McpServer | None) -> McpServer:
    place = f"settings.mcpServers.{name}"
    try:
        body = msgspec.convert(entry, McpServerBody)
    except msgspec.ValidationError as exc:
        refusal = invalid_request(exc, McpServerBody)
        raise McpConfigInvalid(refusal.message, param=".".join(filter(None, (place, refusal.param)))) from exc
    if (body.command is None) == (body.url is None):
        raise McpConfigInvalid(
            "A server needs either a `command` or a `url`. To switch in a patch, set the other to null.",
            param=place,
        )
    common: dict[str, Any] = {
        "disabled": body.disabled,
        "timeout_s": body.timeout_s,
        "scope": ServerScope(body.scope),
        "trust_annotations": body.trust_annotations,
    }
    if body.command is not None:
        _refuse_foreign(place, type=body.type not in {None, "stdio"}, headers=body.headers)
        server = StdioServer(body.command, tuple(body.args), {}, body.cwd, **common)
        return replace(server, env=_secrets(f"{place}.env", body.env, server, kept))
    assert body.url is not None
    _refuse_foreign(place, type=body.type == "stdio", args=body.args, env=body.env, cwd=body.cwd)
    server = RemoteServer(body.url, {}, **common)
    return replace(server, headers=_secrets(f"{place}.headers", body.headers, server, kept))


def _refuse_foreign(place: str, **fields: object) -> None:
    for name, value in fields.items():
        if value:
            raise McpConfigInvalid(
                "This field doesn't match the server's kind: `command` takes `args`, `env` and `cwd`; "
                "`url` takes `headers`.",
                param=f"{place}.{name}",
            )


def _secrets(
    place: str, given: Mapping[str, str], server: McpServer, kept: McpServer | None
) -> Mapping[str, Secret]:
    """The secrets in a request, with stored values in place of masks.

    A mask is accepted only if nothing else changes. Otherwise somebody who may change a server but not see
    its secrets could leak them: to another address, through an argument, or by another variable.
    """
    known: Mapping[str, Secret] = kept.secrets if kept is not None and kept.is_like(server) else {}
    masked = [name for name, value in given.items() if value == MASK]
    if masked and given.keys() == known.keys() and len(masked) == len(given):
        return dict(known)
    if masked:
        raise McpConfigInvalid(
            "You can send a mask only if nothing else about the server changes. Send the value itself.",
            param=f"{place}.{next((name for name in masked if name not in known), masked[0])}",
        )
    return {name: Secret(value) for name, value in given.items()}
