"""Views of a message's parts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.approval import ApprovalAction, ApprovalScope, CallApproval, Decision
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    StepStatus,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.wire.view import Id, Time, View, rfc3339

Iteration = Annotated[int, Meta(description="The model call it belongs to, from 1; 0 before the first.")]
Superseded = Annotated[bool, Meta(description="Its model call was retried, so it no longer counts.")]


class TextPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Text that the user or the model wrote."""

    text: str
    iteration: Iteration
    superseded: Superseded = False


class ThoughtPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="thought"):
    """The model's reasoning; `title` names a step of another engine's run."""

    text: str
    started_at: Time
    duration_ms: int
    iteration: Iteration
    title: str | None = None
    superseded: Superseded = False


class CallApprovalView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The request about a tool call, to its user or to their client; without `action` while it is open."""

    request_id: Id
    message: str
    expires_at: Time
    action: ApprovalAction | UnsetType = UNSET
    scope: ApprovalScope | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    arguments: Annotated[Mapping[str, Any] | UnsetType, Meta(description="The user's changed arguments.")] = (
        UNSET
    )


class AnswerView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The user's answer."""

    action: ApprovalAction
    at: Time
    content: Any = None


class ToolCallPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A tool call with its result."""

    tool_call_id: str
    tool_name: str
    server: str
    arguments: Mapping[str, Any]
    status: ToolCallStatus
    result: Any
    duration_ms: int | None
    iteration: Iteration
    error: str | UnsetType = UNSET
    chart_data: Any | UnsetType = UNSET
    artifact_ids: Sequence[str] | UnsetType = UNSET
    approval: CallApprovalView | UnsetType = UNSET
    client_request: Annotated[
        CallApprovalView | UnsetType, Meta(description="The request to the client to run the tool.")
    ] = UNSET
    superseded: Superseded = False


class RetrievalHitView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A matching passage of a document, or a memory."""

    source: str
    text: str
    score: float
    chunk_id: str | None = None
    document_id: str | None = None
    page: int | None = None
    url: str | None = None
    file_name: str | None = None


class RetrievalPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="retrieval"):
    """Passages found before the reply or by a tool call."""

    query: str
    hits: Sequence[RetrievalHitView]
    iteration: Iteration
    tool_call_id: str | None = None
    superseded: Superseded = False


class FilePartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="file"):
    """A file that the user attached, an image that a tool returned, or output of another engine's run."""

    file_id: str
    file_name: str
    media_type: str
    size: int
    iteration: Iteration
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    tool_call_id: str | None = None
    is_elsewhere: Annotated[
        bool, Meta(description="Only another engine has it, under its own `fileId`: no download.")
    ] = False
    superseded: Superseded = False


class CardPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="card"):
    """A briefing shown in a conversation."""

    briefing_id: Id
    title: str
    summary: str
    priority: str
    sent_at: Time
    data: Mapping[str, Any] | None
    actions: Sequence[Mapping[str, Any]]
    iteration: Iteration
    superseded: Superseded = False


class QuestionPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="question"):
    """A question from the model or an MCP server; without `answer` while it is open."""

    request_id: Id
    message: str
    expires_at: Time
    iteration: Iteration
    tool_call_id: str | None = None
    schema: Annotated[Mapping[str, Any] | None, Meta(description="A JSON Schema of the answer.")] = None
    url: Annotated[str | None, Meta(description="The URL where the user answers.")] = None
    answer: AnswerView | UnsetType = UNSET
    superseded: Superseded = False


class UserTextPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="user_text"):
    """A message that steered the turn, at the point where it joined."""

    message_id: Annotated[str, Meta(description="The id of the message; empty in shares.")]
    text: str
    iteration: Iteration
    superseded: Superseded = False


class StepPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="step"):
    """A step of an agent in code."""

    step_id: Annotated[str, Meta(description="Unique in the turn; see `GET /api/turns/{id}/steps`.")]
    name: str
    title: str | None
    status: Annotated[
        StepStatus, Meta(description="`unknown`: it was cut off, and may or may not have taken effect.")
    ]
    started_at: Time
    duration_ms: int | None
    iteration: Iteration
    agent: Annotated[str | None, Meta(description="The agent that it ran, if it ran one.")] = None
    parent_id: Annotated[str | None, Meta(description="The step that ran the agent whose step it is.")] = None
    superseded: Superseded = False


class NoticePartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="notice"):
    """Something is unavailable; the turn continued."""

    code: str
    message: str
    iteration: Iteration
    superseded: Superseded = False


PartView = (
    TextPartView
    | ThoughtPartView
    | ToolCallPartView
    | RetrievalPartView
    | QuestionPartView
    | UserTextPartView
    | FilePartView
    | CardPartView
    | StepPartView
    | NoticePartView
)


def part_view(part: Part) -> PartView:
    """A message part."""
    match part:
        case TextPart():
            return TextPartView(text=part.text, iteration=part.iteration, superseded=part.superseded)
        case ThoughtPart():
            return ThoughtPartView(
                text=part.text,
                started_at=rfc3339(part.started_at),
                duration_ms=part.duration_ms,
                iteration=part.iteration,
                title=part.title,
                superseded=part.superseded,
            )
        case ToolCallPart():
            return _tool_call_view(part)
        case RetrievalPart():
            return RetrievalPartView(
                query=part.query,
                hits=[_hit_view(hit) for hit in part.hits],
                iteration=part.iteration,
                tool_call_id=part.tool_call_id,
                superseded=part.superseded,
            )
        case QuestionPart():
            return QuestionPartView(
                request_id=part.request_id,
                message=part.message,
                expires_at=rfc3339(part.expires_at),
                iteration=part.iteration,
                tool_call_id=part.tool_call_id,
                schema=part.schema,
                url=part.url,
                answer=UNSET if part.decision is None else _answer_view(part.decision),
                superseded=part.superseded,
            )
        case UserTextPart():
            return UserTextPartView(
                message_id=part.message_id,
                text=part.text,
                iteration=part.iteration,
                superseded=part.superseded,
            )
        case FilePart():
            return file_part_view(part)
        case CardPart():
            return _card_view(part)
        case StepPart():
            return StepPartView(
                step_id=part.step_id,
                name=part.name,
                title=part.title,
                status=part.status,
                started_at=rfc3339(part.at),
                duration_ms=part.duration_ms,
                iteration=part.iteration,
                agent=part.agent,
                parent_id=part.parent_id,
                superseded=part.superseded,
            )
        case NoticePart():
            return NoticePartView(
                code=part.code,
                message=part.message,
                iteration=part.iteration,
                superseded=part.superseded,
            )
        case _ as never:
            assert_never(never)


def _tool_call_view(part: ToolCallPart) -> ToolCallPartView:
    call = part.call
    return ToolCallPartView(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        server=call.server,
        arguments=call.arguments,
        status=call.status,
        result=call.result,
        duration_ms=call.duration_ms,
        iteration=part.iteration,
        error=UNSET if call.error is None else call.error,
        chart_data=UNSET if call.chart_data is None else call.chart_data,
        artifact_ids=call.artifact_ids or UNSET,
        approval=UNSET if part.approval is None else _approval_view(part.approval),
        client_request=UNSET if part.client_request is None else _approval_view(part.client_request),
        superseded=part.superseded,
    )


def _approval_view(approval: CallApproval) -> CallApprovalView:
    asked = CallApprovalView(
        request_id=approval.request_id, message=approval.message, expires_at=rfc3339(approval.expires_at)
    )
    if (decision := approval.decision) is None:
        return asked
    return msgspec.structs.replace(
        asked,
        action=decision.action,
        scope=decision.scope,
        at=rfc3339(decision.at),
        arguments=UNSET if decision.arguments is None else decision.arguments,
    )


def _answer_view(decision: Decision) -> AnswerView:
    return AnswerView(action=decision.action, at=rfc3339(decision.at), content=decision.content)


def _hit_view(hit: RetrievalHit) -> RetrievalHitView:
    return RetrievalHitView(
        source=hit.source,
        text=hit.text,
        score=hit.score,
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        page=hit.page,
        url=hit.url,
        file_name=hit.file_name,
    )


def file_part_view(part: FilePart) -> FilePartView:
    """A file as its message shows it."""
    return FilePartView(
        file_id=part.file_id,
        file_name=part.file_name,
        media_type=part.media_type,
        size=part.size,
        iteration=part.iteration,
        width=part.width,
        height=part.height,
        pages=part.pages,
        tool_call_id=part.tool_call_id,
        is_elsewhere=part.is_elsewhere,
        superseded=part.superseded,
    )


def _card_view(part: CardPart) -> CardPartView:
    card = part.card
    return CardPartView(
        briefing_id=card.briefing_id,
        title=card.title,
        summary=card.summary,
        priority=card.priority,
        sent_at=rfc3339(card.sent_at),
        data=card.data,
        actions=card.actions,
        iteration=part.iteration,
        superseded=part.superseded,
    )
