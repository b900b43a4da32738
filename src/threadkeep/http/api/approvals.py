"""Approvals and questions over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from threadkeep.clock import system_clock
from threadkeep.domain.approval import ApprovalAction, ApprovalScope, Decision
from threadkeep.handling.routing import RequestContext
from threadkeep.http.api.turns import turn_view
from threadkeep.wire.approvals import AllowedToolsView, ApprovalsView, allowed_tools_view, approval_view
from threadkeep.wire.turns import TurnView


class AnswerBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The user's answer."""

    action: Annotated[
        Literal["allow", "deny", "edit", "answer", "result"],
        Meta(
            description="For a tool: `allow`, `deny` or `edit`; for a question: `answer` or `deny`; for a "
            "tool that the client runs: `result` or `deny`."
        ),
    ]
    scope: Annotated[
        ApprovalScope,
        Meta(description="`conversation` allows every further call of this tool in the conversation."),
    ] = ApprovalScope.ONCE
    arguments: Annotated[
        Mapping[str, Any] | None, Meta(description="With `edit`: the arguments to call the tool with.")
    ] = None
    content: Annotated[
        Any,
        Meta(
            description="With `answer`: a text, or an object that matches the schema; nothing for a URL. "
            "With `result`: what the tool returned, any JSON."
        ),
    ] = None
    error: Annotated[
        str | None, Meta(description="With `result`, instead of `content`: why the tool failed.")
    ] = None


class DisallowQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Which tool to take back."""

    server: Annotated[str, Meta(description="The tool's MCP server, as `GET …/allowed-tools` lists it.")]
    tool: Annotated[str, Meta(description="The tool's name, as `GET …/allowed-tools` lists it.")]


async def list_approvals(request: RequestContext) -> ApprovalsView:
    """List the open requests of your turns in all conversations, oldest first."""
    return ApprovalsView(
        items=[approval_view(it) for it in await request.services.approvals.open(request.user)]
    )


async def list_allowed_tools(request: RequestContext, *, conversation_id: str) -> AllowedToolsView:
    """List the tools that you have allowed for a whole conversation: their calls no longer ask."""
    return allowed_tools_view(await request.services.approvals.allowed_tools(request.user, conversation_id))


async def disallow_tool(request: RequestContext, *, conversation_id: str, query: DisallowQuery) -> None:
    """Take back that a tool is allowed for a whole conversation; its next call asks again."""
    await request.services.approvals.disallow(request.user, conversation_id, query.server, query.tool)


async def answer_approval(
    request: RequestContext, *, turn_id: str, request_id: str, body: AnswerBody
) -> TurnView:
    """Answer a turn's request; the turn continues. Repeating the same answer changes nothing."""
    decision = Decision(
        action=ApprovalAction(body.action),
        at=system_clock(),
        scope=body.scope,
        arguments=body.arguments,
        content=body.content,
        error=body.error,
    )
    turn = await request.services.approvals.decide(request.user, turn_id, request_id, decision)
    return turn_view(turn, await request.services.running_turns.waits_for(turn))
