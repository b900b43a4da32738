"""Approvals and questions over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from threadkeep.clock import system_clock
from threadkeep.domain.approval import ApprovalAction, ApprovalScope, Decision
from threadkeep.http.api.turns import turn_view
from threadkeep.requests.routing import Call
from threadkeep.wire.approvals import ApprovalsView, approval_view
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


async def list_approvals(call: Call) -> ApprovalsView:
    """List the open requests of your turns in all conversations, oldest first."""
    return ApprovalsView(items=[approval_view(it) for it in await call.services.approvals.open(call.user)])


async def answer_approval(call: Call, *, turn_id: str, request_id: str, body: AnswerBody) -> TurnView:
    """Answer a turn's request; the turn continues. Repeating the same answer changes nothing."""
    decision = Decision(
        action=ApprovalAction(body.action),
        at=system_clock(),
        scope=body.scope,
        arguments=body.arguments,
        content=body.content,
        error=body.error,
    )
    return turn_view(await call.services.approvals.decide(call.user, turn_id, request_id, decision))
