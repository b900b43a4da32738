"""Views of turns' requests to their users."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.approval import AllowedTool, ApprovalKind, OpenApproval
from threadkeep.wire.view import Id, T, Time, View, rfc3339


class ApprovalView(View, frozen=True, kw_only=True):
    """A turn's request to its user; it stays open until the user answers or it expires."""

    request_id: Id
    turn_id: Id
    conversation_id: Id
    conversation_title: str | None
    agent_id: Id
    kind: ApprovalKind
    message: str
    created_at: Time
    expires_at: Time
    tool_call_id: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    server: str | UnsetType = UNSET
    arguments: Mapping[str, Any] | UnsetType = UNSET
    schema: Annotated[
        Mapping[str, Any] | UnsetType, Meta(description="A JSON Schema of the answer, to show as a form.")
    ] = UNSET
    url: Annotated[str | UnsetType, Meta(description="The URL where the user answers.")] = UNSET


class ApprovalsView(View, frozen=True, kw_only=True):
    """The open requests of your turns, oldest first."""

    items: Sequence[ApprovalView]


class AllowedToolView(View, frozen=True, kw_only=True):
    """A tool that you have allowed for a whole conversation."""

    server: str
    name: str
    allowed_at: Time


class AllowedToolsView(View, frozen=True, kw_only=True):
    """The tools that you have allowed for a whole conversation, the latest one first."""

    items: Sequence[AllowedToolView]


def allowed_tools_view(tools: Sequence[AllowedTool]) -> AllowedToolsView:
    """The tools that a user has allowed for a whole conversation."""
    return AllowedToolsView(
        items=[AllowedToolView(server=it.server, name=it.name, allowed_at=rfc3339(it.at)) for it in tools]
    )


def approval_view(approval: OpenApproval) -> ApprovalView:
    """A turn's request to its user."""
    return ApprovalView(
        request_id=approval.request_id,
        turn_id=approval.turn_id,
        conversation_id=approval.conversation_id,
        conversation_title=approval.title,
        agent_id=approval.agent_id,
        kind=approval.kind,
        message=approval.message,
        created_at=rfc3339(approval.created_at),
        expires_at=rfc3339(approval.expires_at),
        tool_call_id=_or_unset(approval.tool_call_id),
        tool_name=_or_unset(approval.tool_name),
        server=_or_unset(approval.server),
        arguments=_or_unset(approval.arguments),
        schema=_or_unset(approval.schema),
        url=_or_unset(approval.url),
    )


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


class WaitingTurnView(View, frozen=True, kw_only=True):
    """A turn that is waiting for its user."""

    status: Literal["WAITING"]
    turn_id: Id
    approvals: Sequence[ApprovalView]
