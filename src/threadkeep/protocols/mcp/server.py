"""What the MCP SDK calls: our tools and resources, for the user who sent the request."""

import asyncio
import base64
import inspect
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import Scope as RequestScope

from threadkeep.clock import system_clock
from threadkeep.domain.approval import Decision
from threadkeep.domain.errors import UNEXPECTED, ThreadkeepError
from threadkeep.domain.text import visible
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.handling.errors import STATUSES
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.mcp import resources
from threadkeep.protocols.mcp.asking import decision_of, question_for
from threadkeep.protocols.mcp.tools import (
    TOOLS,
    ReadingTool,
    Tool,
    TurnTool,
    decode_arguments,
    object_schema,
)
from threadkeep.protocols.mcp.turns import (
    TurnView,
    asked,
    decide_all,
    follow,
    last_event_of,
    own_turn,
    turn_view,
)
from threadkeep.version import __version__

log = logging.getLogger("threadkeep.mcp")

_REQUEST = "mcp_request"
_BY_NAME = {tool.name: tool for tool in TOOLS}
_INSTRUCTIONS = (
    "Threadkeep keeps conversations with AI agents. `list_agents` names the agents; `send_message` asks one "
    "and returns its reply with a `conversationId`, which continues the conversation. A result with the "
    "status WAITING needs a decision of the user: show them `approvals`, then call `answer_approval`."
)

Context = ServerRequestContext[Any, Any]
Called = types.CallToolResult | types.InputRequiredResult


def remember_request(scope: RequestScope, request: RequestContext) -> None:
    """Lets the handlers below know who calls."""
    scope["state"][_REQUEST] = request


def _request_of(context: Context) -> RequestContext:
    assert context.request is not None  # every message comes by HTTP
    return context.request.scope["state"][_REQUEST]


async def _list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    key = _request_of(context).user.key
    allowed = [it for it in TOOLS if key is None or any(scope.includes(it.scope) for scope in key.scopes)]
    return types.ListToolsResult(tools=[_LISTED[it.name] for it in allowed])


def _listed(tool: Tool) -> types.Tool:
    is_reading = isinstance(tool, ReadingTool)
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=" ".join((inspect.getdoc(tool.run) or "").split()),
        input_schema=object_schema(tool.arguments),
        output_schema=object_schema(tool.result if isinstance(tool, ReadingTool) else TurnView),
        annotations=types.ToolAnnotations(read_only_hint=is_reading, open_world_hint=not is_reading),
    )


_LISTED = {tool.name: _listed(tool) for tool in TOOLS}


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> Called:
    tool = _BY_NAME.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
    request = _request_of(context)
    try:
        if request.user.key is not None:
            request.user.key.check_scope(tool.scope)
        if isinstance(tool, TurnTool):
            return await _run_turn(context, request, tool, params)
        return _result(await tool.run(request, decode_arguments(tool, params.arguments or {})))
    except ThreadkeepError as exc:
        return _failure(f"{exc.message} ({exc.code})")
    except Exception:
        log.exception("the tool %s failed", tool.name)
        return _failure(UNEXPECTED)


async def _run_turn(
    context: Context, request: RequestContext, tool: TurnTool, params: types.CallToolRequestParams
) -> Called:
    """Begins or continues a turn, and follows it until it ends or waits for its user."""
    is_dismissed = False
    if params.request_state is None:
        turn, seen = await tool.run(request, decode_arguments(tool, params.arguments or {}))
    else:
        # The client repeats the call with its user's answers. The turn is looked up as this user's.
        turn = await own_turn(request, params.request_state)
        seen = await last_event_of(request, turn)
        answers = params.input_responses or {}
        decisions = await _decisions(request, turn, answers)
        await decide_all(request, turn, decisions)
        is_dismissed = len(decisions) < len(answers)
        turn = await own_turn(request, turn.id)

    async def report(position: int, news: str) -> None:
        await context.session.report_progress(position, message=news)

    status = await follow(request, turn, report, seen)
    waiting = (
        await request.services.approvals.open(request.user, turn) if status is TurnStatus.WAITING else ()
    )
    if waiting and not is_dismissed and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        client = context.session.client_capabilities
        questions = {it.request_id: question_for(it, client) for it in waiting}
        if requests := {id_: question for id_, question in questions.items() if question is not None}:
            return types.InputRequiredResult(input_requests={**requests}, request_state=turn.id)
    view = await turn_view(request, turn, status, waiting)
    return _result(view, is_error=view.status is TurnStatus.FAILED)


async def _decisions(
    request: RequestContext, turn: Turn, answers: Mapping[str, object]
) -> dict[str, Decision]:
    """What the client's user has decided, by request."""
    decisions: dict[str, Decision] = {}
    for request_id, answer in answers.items():
        approval = await asked(request, turn, request_id)
        if isinstance(answer, types.ElicitResult):
            decision = decision_of(approval, answer, system_clock())
            if decision is not None:
                decisions[approval.request_id] = decision
    return decisions


def _result(view: msgspec.Struct, *, is_error: bool = False) -> types.CallToolResult:
    """A view as structured content, and as text for clients that show only that to their model."""
    # Also requests for approval: what hides in them is spelled out, as the same JSON.
    text = types.TextContent(text=visible(msgspec.json.encode(view).decode()))
    return types.CallToolResult(
        content=[text], structured_content=msgspec.to_builtins(view), is_error=is_error
    )


def _failure(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def _list_resources(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    with _errors_told():
        page = await resources.list_conversations(_request_of(context), params.cursor if params else None)
    listed = [
        types.Resource(
            name=it.title or "Untitled conversation",
            uri=f"{resources.CONVERSATIONS}{it.id}",
            mime_type="application/json",
        )
        for it in page.items
    ]
    return types.ListResourcesResult(resources=listed, next_cursor=page.next_cursor)


async def _list_templates(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    conversation = types.ResourceTemplate(
        name="conversation",
        description="A conversation with its latest messages.",
        uri_template=f"{resources.CONVERSATIONS}{{id}}",
        mime_type="application/json",
    )
    artifact = types.ResourceTemplate(
        name="artifact",
        description="A file that a tool made in a conversation.",
        uri_template=f"{resources.ARTIFACTS}{{id}}",
    )
    return types.ListResourceTemplatesResult(resource_templates=[conversation, artifact])


async def _read_resource(
    context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    with _errors_told():
        content = await resources.read_resource(_request_of(context), uri)
    return types.ReadResourceResult(contents=[await asyncio.to_thread(_contents, uri, content)])


def _contents(
    uri: str, content: resources.Content
) -> types.TextResourceContents | types.BlobResourceContents:
    if (text := content.text) is not None:
        return types.TextResourceContents(uri=uri, mime_type=content.media_type, text=text)
    blob = base64.b64encode(content.data).decode()
    return types.BlobResourceContents(uri=uri, mime_type=content.media_type, blob=blob)


@contextmanager
def _errors_told() -> Generator[None]:
    """Our errors as the protocol's. The SDK would show the client the text of any other."""
    try:
        yield
    except ThreadkeepError as exc:
        is_ours = STATUSES.get(exc.code, 500) >= 500
        code = types.INTERNAL_ERROR if is_ours else types.INVALID_PARAMS
        raise MCPError(code, exc.message, {"code": exc.code}) from exc
    except Exception as exc:
        log.exception("reading resources failed")
        raise MCPError(types.INTERNAL_ERROR, UNEXPECTED) from exc


SERVER: Server[Any] = Server(
    "threadkeep",
    version=__version__,
    title="Threadkeep",
    instructions=_INSTRUCTIONS,
    get_tool_input_schema=lambda name: _LISTED[name].input_schema if name in _LISTED else None,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
    on_list_resources=_list_resources,
    on_list_resource_templates=_list_templates,
    on_read_resource=_read_resource,
)
