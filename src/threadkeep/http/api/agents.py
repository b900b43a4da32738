"""Agents over HTTP."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.domain.agent import (
    DEFAULT_ROLE_ID,
    Agent,
    AgentDraft,
    AgentSettings,
    Visibility,
)
from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.errors import SecretUnreadable
from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.domain.secret import MASK, Secret
from threadkeep.domain.text import one_line
from threadkeep.domain.tool_rules import rules_without_server
from threadkeep.handling.etags import etag, expected_version
from threadkeep.handling.merge_patch import merge_patch
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext, ViewResponse
from threadkeep.http.api.agent_engine import EngineBody, remote_from_body, remote_to_body
from threadkeep.http.api.agent_settings import AgentSettingsBody
from threadkeep.http.api.mcp_servers import servers_from_body, servers_to_body
from threadkeep.http.api.tool_rules import rules_from_body, rules_to_body
from threadkeep.services.agents import Agents
from threadkeep.wire.decoding import invalid_request
from threadkeep.wire.view import PageView
from threadkeep.wire.views import (
    AgentChangeView,
    AgentDetailView,
    AgentPreviewView,
    AgentView,
    AuditEntryView,
    agent_detail_view,
    agent_view,
    audit_view,
)


class AgentBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent to create."""

    name: Annotated[str, Meta(description="Its name, at most 100 characters in one line.")]
    description: Annotated[str, Meta(description="What it is for, at most 2,000 characters.")] = ""
    primary_role_id: Annotated[
        str, Meta(description="The role that its prompt starts with, at most 100 characters.")
    ] = DEFAULT_ROLE_ID
    system_prompt: Annotated[
        str, Meta(description="Its instructions to the model, at most 100,000 characters.")
    ] = ""
    model: Annotated[
        str | None,
        Meta(description="A model's id or name, at most 200 characters; null means the server's default."),
    ] = None
    visibility: Annotated[
        Visibility, Meta(description="Who may talk to it: only its owner, or everyone.")
    ] = Visibility.PRIVATE
    settings: Annotated[
        AgentSettingsBody, Meta(description="Its limits and behavior; what you leave out has its default.")
    ] = AgentSettingsBody()
    engine: Annotated[
        EngineBody | None,
        Meta(description="A server of somebody else's that runs it; null if Threadkeep does, with `model`."),
    ] = None
    applied: Annotated[
        bool,
        Meta(
            description="Whether a file describes it, as for `threadkeep apply`: sets `appliedVersion`; 409 "
            "`CONFLICT` if you have another agent of this name."
        ),
    ] = False


class AgentPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The fields to change: a JSON merge patch (RFC 7396), in which null restores the default."""

    name: Annotated[
        str | UnsetType, Meta(description="Its new name, at most 100 characters in one line.")
    ] = UNSET
    description: Annotated[
        str | UnsetType | None, Meta(description="What it is for, at most 2,000 characters; null empties it.")
    ] = UNSET
    primary_role_id: Annotated[
        str | UnsetType | None,
        Meta(description="The role that its prompt starts with; null restores the default."),
    ] = UNSET
    system_prompt: Annotated[
        str | UnsetType | None,
        Meta(description="Its instructions to the model, at most 100,000 characters; null removes them."),
    ] = UNSET
    model: Annotated[
        str | UnsetType | None, Meta(description="A model's id or name; null means the server's default.")
    ] = UNSET
    visibility: Annotated[
        Visibility | UnsetType | None, Meta(description="Who may talk to it; null makes it private.")
    ] = UNSET
    settings: Annotated[
        dict[str, Any] | UnsetType | None,
        Meta(description="Any of the fields of `settings`; `output`, a schema, is replaced as a whole."),
    ] = UNSET
    engine: Annotated[
        dict[str, Any] | UnsetType | None,
        Meta(examples=[None], description="Any of the fields of `engine`; null has Threadkeep run it again."),
    ] = UNSET
    applied: Annotated[
        bool | UnsetType,
        Meta(description="Whether a file describes it as it then is: sets `appliedVersion`."),
    ] = UNSET


async def create_agent(request: RequestContext, *, body: AgentBody) -> ViewResponse[AgentDetailView]:
    """Create an agent. You become its owner."""
    return await _detail(
        await request.services.agents.create(
            request.user,
            _draft(body, {}, request.services.agents.default_settings),
            applied=body.applied,
        ),
        request,
    )


async def preview_new_agent(request: RequestContext, *, body: AgentBody) -> AgentPreviewView:
    """Check an agent without creating it, and list what differs from an agent with a name alone."""
    services = request.services.agents
    made = await services.checked(request.user, _draft(body, {}, services.default_settings))
    plain = replace(made, **_plain_fields(services.default_settings))
    return _preview(plain, made, services)


async def list_agents(request: RequestContext, *, query: PageQuery) -> PageView[AgentView]:
    """List your own agents and the public ones, oldest first."""
    pager, services = Pager(request.cursors, request.user, "agents", query), request.services.agents
    found = await services.page(
        request.user, after=pager.after(str), offset=pager.offset, limit=pager.fetch_limit
    )
    served = await services.served(found)
    return pager.page(
        found,
        lambda agent: agent.id,
        lambda agents: [agent_view(services.as_it_runs(it), request.user, served) for it in agents],
    )


async def get_agent(request: RequestContext, *, agent_id: str) -> ViewResponse[AgentDetailView]:
    """Read an agent. Only its owner and admins see more than name, description and owner."""
    return await _detail(await request.services.agents.get(request.user, agent_id), request)


async def patch_agent(
    request: RequestContext, *, agent_id: str, body: AgentPatch
) -> ViewResponse[AgentDetailView]:
    """Change an agent with a JSON merge patch. With `If-Match`, only if it hasn't changed."""
    services = request.services.agents
    agent = await services.update(
        request.user,
        agent_id,
        _revising(body, services.default_settings),
        expected_version=expected_version(request),
        applied=body.applied is True,
    )
    return await _detail(agent, request)


async def preview_agent(request: RequestContext, *, agent_id: str, body: AgentPatch) -> AgentPreviewView:
    """Check a change of an agent without making it, and list what it would change."""
    services = request.services.agents
    before, after = await services.preview(request.user, agent_id, _revising(body, services.default_settings))
    return _preview(before, after, services)


async def duplicate_agent(request: RequestContext, *, agent_id: str) -> ViewResponse[AgentDetailView]:
    """Copy an agent that you may change. The copy is private, belongs to you and is named "… copy".

    It has the prompt with its files, the settings and the MCP servers, but no documents. An admin's copy of
    somebody else's agent has no secrets of MCP servers: servers that need them are disabled.
    """
    return await _detail(await request.services.agent_copies.make(request.user, agent_id), request)


async def delete_agent(request: RequestContext, *, agent_id: str) -> None:
    """Delete an agent. Conversations with it stay readable. You can't delete the default agent."""
    await request.services.agents.delete(request.user, agent_id)


async def list_audit(request: RequestContext, *, query: PageQuery) -> PageView[AuditEntryView]:
    """List who changed agents, gateways and keys or stopped turns, newest first. For admins."""
    pager = Pager(request.cursors, request.user, "audit", query)
    found = await request.services.agents.audit(
        request.user, before=pager.after(str), offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(found, lambda entry: entry.id, lambda entries: [audit_view(it) for it in entries])


async def _detail(agent: Agent, request: RequestContext) -> ViewResponse[AgentDetailView]:
    reports = await request.services.mcp_servers.report(agent) if agent.is_open_to(request.user) else None
    shown, served = request.services.agents.as_it_runs(agent), await request.services.agents.served([agent])
    view = agent_detail_view(shown, request.user, served, reports)
    return ViewResponse(view, headers=etag(agent.version))


def _revising(body: AgentPatch, default: AgentSettings) -> Callable[[Agent], AgentDraft]:
    """What makes a draft of an agent with a merge patch."""

    def revise(agent: Agent) -> AgentDraft:
        merged = merge_patch(msgspec.to_builtins(_body(agent)), msgspec.to_builtins(body))
        if body.settings and body.settings.get("output") is not None:
            # A schema is one value: merged with the one before, it would describe neither's replies.
            merged["settings"]["output"] = body.settings["output"]
        try:
            revised = msgspec.convert(merged, AgentBody)
            return _draft(revised, agent.settings.mcp_servers, default, agent.remote)
        except msgspec.ValidationError as exc:
            raise invalid_request(exc, AgentBody) from exc

    return revise


def _plain_fields(default: AgentSettings) -> dict[str, Any]:
    """An agent's fields, but its name, if nobody sets them."""
    draft = _draft(AgentBody(name="-"), {}, default)
    return {field.name: getattr(draft, field.name) for field in fields(draft) if field.name != "name"}


def _preview(before: Agent, after: Agent, services: Agents) -> AgentPreviewView:
    old, new = _leaves(msgspec.to_builtins(_body(before))), _leaves(msgspec.to_builtins(_body(after)))
    for agent, leaves in ((before, old), (after, new)):
        leaves.update(_secrets(agent.settings.mcp_servers))
        if agent.remote is not None:
            leaves.update(_plain(agent.remote.headers, ("engine", "headers")))
    changes = [
        AgentChangeView(path=path, before=_shown(old.get(path)), after=_shown(new.get(path)))
        for path in dict.fromkeys((*old, *new))
        if old.get(path) != new.get(path)
    ]
    return AgentPreviewView(
        changes=changes,
        requires_token=services.makes_token_due(after),
        rules_without_server=rules_without_server(after.settings.tools, after.settings.mcp_servers) or UNSET,
    )


def _leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The values in objects in objects, by the keys that lead to them."""
    if not isinstance(value, dict) or not value:
        return {} if isinstance(value, dict) else {path: value}
    entries = cast("dict[str, Any]", value).items()
    return {place: leaf for key, it in entries for place, leaf in _leaves(it, (*path, key)).items()}


def _secrets(servers: Mapping[str, McpServer]) -> dict[tuple[str, ...], Secret | object]:
    """The secrets of servers in plain text, to compare them."""
    found: dict[tuple[str, ...], Secret | object] = {}
    for name, server in servers.items():
        kind = "env" if isinstance(server, StdioServer) else "headers"
        found |= _plain(server.secrets, ("settings", "mcpServers", name, kind))
    return found


def _plain(secrets: Mapping[str, Secret], place: tuple[str, ...]) -> dict[tuple[str, ...], Secret | object]:
    """Secrets in plain text, by the keys that lead to them; one that can't be read is like no other."""
    found: dict[tuple[str, ...], Secret | object] = {}
    for key, secret in secrets.items():
        try:
            found[(*place, key)] = Secret(secret.reveal())
        except SecretUnreadable:
            found[(*place, key)] = object()
    return found


def _shown(value: object) -> object:
    return MASK if isinstance(value, Secret) or type(value) is object else value


def _draft(
    body: AgentBody,
    kept: Mapping[str, McpServer],
    default: AgentSettings,
    kept_remote: RemoteAgent | None = None,
) -> AgentDraft:
    given = {name: getattr(body.settings, name) for name in AgentSettingsBody.__struct_fields__}
    settings = {name: getattr(default, name) if it is UNSET else it for name, it in given.items()}
    settings["mcp_servers"] = servers_from_body(body.settings.mcp_servers, kept)
    settings["tools"] = rules_from_body(body.settings.tools)
    return AgentDraft(
        name=one_line(body.name),
        description=body.description,
        primary_role_id=body.primary_role_id,
        system_prompt=body.system_prompt,
        model=body.model,
        visibility=body.visibility,
        settings=AgentSettings(**settings),
        remote=remote_from_body(body.engine, kept_remote),
    )


def _body(agent: Agent) -> AgentBody:
    settings = {name: getattr(agent.settings, name) for name in AgentSettingsBody.__struct_fields__}
    settings["mcp_servers"] = servers_to_body(agent.settings.mcp_servers)
    settings["tools"] = rules_to_body(agent.settings.tools)
    return AgentBody(
        name=agent.name,
        description=agent.description,
        primary_role_id=agent.primary_role_id,
        system_prompt=agent.system_prompt,
        model=agent.model,
        visibility=agent.visibility,
        settings=AgentSettingsBody(**settings),
        engine=remote_to_body(agent.remote),
    )
