"""Views of turns' requests to their users."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.approval import AllowedTool, ApprovalKind, OpenApproval
from threadkeep.wire.view import CompleteListView, Id, T, Time, View, rfc3339


class ApprovalView(View, frozen=True, kw_only=True):
    """A turn's request to its user; it stays open until the user answers or it expires."""

    request_id: Annotated[Id, Meta(description="The id with which the request is answered.")]
    turn_id: Annotated[Id, Meta(description="The turn that waits for it.")]
    conversation_id: Annotated[Id, Meta(description="The conversation whose turn waits.")]
    conversation_title: Annotated[
        str | None, Meta(description="The conversation's title; null if it has none yet.")
    ]
    agent_id: Annotated[Id, Meta(description="The agent whose turn waits.")]
    kind: Annotated[
        ApprovalKind, Meta(description="What is asked for: permission, an answer, a form or a tool's result.")
    ]
    message: Annotated[str, Meta(description="What the user reads before deciding.")]
    created_at: Annotated[Time, Meta(description="When the agent asked for it.")]
    expires_at: Annotated[Time, Meta(description="When it counts as refused if nobody answers.")]
    tool_call_id: Annotated[str | UnsetType, Meta(description="The call that waits for it.")] = UNSET
    tool_name: Annotated[str | UnsetType, Meta(description="The tool that waits for it.")] = UNSET
    server: Annotated[str | UnsetType, Meta(description="The MCP server that the tool belongs to.")] = UNSET
    arguments: Annotated[
        Mapping[str, Any] | UnsetType, Meta(description="What the tool would be called with.")
    ] = UNSET
    schema: Annotated[
        Mapping[str, Any] | UnsetType, Meta(description="A JSON Schema of the answer, to show as a form.")
    ] = UNSET
    url: Annotated[str | UnsetType, Meta(description="The URL where the user answers.")] = UNSET


class ApprovalsView(CompleteListView, frozen=True, kw_only=True):
    """The open requests of your turns, oldest first."""

    items: Annotated[Sequence[ApprovalView], Meta(description="All open requests, the oldest first.")]


class AllowedToolView(View, frozen=True, kw_only=True):
    """A tool that you have allowed for a whole conversation."""

    server: Annotated[str, Meta(description="The MCP server that offers the tool.")]
    name: Annotated[str, Meta(description="The tool's name on its server.")]
    allowed_at: Annotated[Time, Meta(description="When you allowed it for the conversation.")]


class AllowedToolsView(CompleteListView, frozen=True, kw_only=True):
    """The tools that you have allowed for a whole conversation, the latest one first."""

    items: Annotated[
        Sequence[AllowedToolView],
        Meta(description="The tools that run without asking, the latest allowed first."),
    ]


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

    status: Annotated[
        Literal["WAITING"], Meta(description="Always `WAITING`: the turn continues once it is answered.")
    ]
    turn_id: Annotated[Id, Meta(description="The turn that waits for its user.")]
    approvals: Annotated[
        Sequence[ApprovalView], Meta(description="What the turn waits for; answer each to continue it.")
    ]
