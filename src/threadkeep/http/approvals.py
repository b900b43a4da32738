"""What turns ask their users, over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from threadkeep.clock import system_clock
from threadkeep.domain.approval import Answer, ApprovalAction, ApprovalScope
from threadkeep.http.services import ApiCall
from threadkeep.http.turns import turn_view
from threadkeep.wire.approvals import ApprovalsView, approval_view
from threadkeep.wire.turns import TurnView


class AnswerBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the user says."""

    action: Annotated[
        Literal["allow", "deny", "edit", "answer"],
        Meta(description="A tool takes `allow`, `deny` and `edit`, a question `answer` and `deny`."),
    ]
    scope: Annotated[
        ApprovalScope, Meta(description="`conversation` allows every call of this tool in the conversation.")
    ] = ApprovalScope.ONCE
    arguments: Annotated[
        Mapping[str, Any] | None, Meta(description="With `edit`: what the tool is called with instead.")
    ] = None
    content: Annotated[
        Any, Meta(description="With `answer`: a text, or an object that fits the schema; nothing for a URL.")
    ] = None


async def list_approvals(call: ApiCall) -> ApprovalsView:
    """List what one's turns wait for, over all conversations, oldest first."""
    return ApprovalsView(items=[approval_view(it) for it in await call.services.approvals.open(call.user)])


async def answer_approval(call: ApiCall, *, turn_id: str, request_id: str, body: AnswerBody) -> TurnView:
    """Answer what a turn asks its user; the turn continues. The same answer again changes nothing."""
    answer = Answer(
        action=ApprovalAction(body.action),
        at=system_clock(),
        scope=body.scope,
        arguments=body.arguments,
        content=body.content,
    )
    return turn_view(await call.services.approvals.answer(call.user, turn_id, request_id, answer))
