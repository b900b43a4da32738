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
    OutputPart,
    Parts,
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

    text: Annotated[str, Meta(description="The text, as Markdown from a model.")]
    iteration: Iteration
    superseded: Superseded = False


class ThoughtPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="thought"):
    """The model's reasoning; `title` names a step of another engine's run."""

    text: Annotated[str, Meta(description="The reasoning as the provider shows it.")]
    started_at: Annotated[Time, Meta(description="When the model began to think, in UTC.")]
    duration_ms: Annotated[int, Meta(description="How long the model thought, in milliseconds.")]
    iteration: Iteration
    title: Annotated[str | None, Meta(description="The step of another engine's run.")] = None
    superseded: Superseded = False


class CallApprovalView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The request about a tool call, to its user or to their client; without `action` while it is open."""

    request_id: Annotated[Id, Meta(description="The id with which the request is answered.")]
    message: Annotated[str, Meta(description="What the user reads before deciding.")]
    expires_at: Annotated[Time, Meta(description="When it counts as refused if nobody answers.")]
    action: Annotated[
        ApprovalAction | UnsetType, Meta(description="What the user decided; missing while it is open.")
    ] = UNSET
    scope: Annotated[
        ApprovalScope | UnsetType,
        Meta(description="Whether the decision holds once or for the conversation."),
    ] = UNSET
    at: Annotated[Time | UnsetType, Meta(description="When the user decided, in UTC.")] = UNSET
    arguments: Annotated[
        Mapping[str, Any] | UnsetType, Meta(description="The arguments as the user changed them.")
    ] = UNSET


class AnswerView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The user's answer."""

    action: Annotated[ApprovalAction, Meta(description="What the user did: answered it or refused.")]
    at: Annotated[Time, Meta(description="When the user decided, in UTC.")]
    content: Annotated[Any, Meta(description="The answer's text, or the form's fields.")] = None


class ToolCallPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A tool call with its result."""

    tool_call_id: Annotated[str, Meta(description="The call's id within its turn.")]
    tool_name: Annotated[str, Meta(description="The tool that was called.")]
    server: Annotated[str, Meta(description="The MCP server that the tool belongs to.")]
    arguments: Annotated[Mapping[str, Any], Meta(description="What the tool was called with.")]
    status: Annotated[ToolCallStatus, Meta(description="Whether it runs, waits or ended, and how.")]
    result: Annotated[Any, Meta(description="What the tool returned; null until it ended.")]
    duration_ms: Annotated[
        int | None, Meta(description="How long it took, in milliseconds; null until it ended.")
    ]
    iteration: Iteration
    error: Annotated[str | UnsetType, Meta(description="Why it failed, if it did.")] = UNSET
    chart_data: Annotated[
        Any | UnsetType, Meta(description="A chart of the result, for clients to draw.")
    ] = UNSET
    artifact_ids: Annotated[
        Sequence[str] | UnsetType,
        Meta(description="The files that it made; `GET /api/artifacts/{id}` downloads one."),
    ] = UNSET
    approval: Annotated[
        CallApprovalView | UnsetType, Meta(description="The request to the user to permit the call.")
    ] = UNSET
    client_request: Annotated[
        CallApprovalView | UnsetType, Meta(description="The request to the client to run the tool.")
    ] = UNSET
    parent_id: Annotated[
        str | UnsetType,
        Meta(description="The step that ran the agent that called it, if that is another one."),
    ] = UNSET
    superseded: Superseded = False


class RetrievalHitView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A matching passage of a document, or a memory."""

    source: Annotated[str, Meta(description="Where it was found, in words for readers.")]
    text: Annotated[str, Meta(description="The passage as the model read it.")]
    score: Annotated[float, Meta(description="How well it matches, from 0 to 1.")]
    chunk_id: Annotated[str | None, Meta(description="The passage's id, for a passage of a document.")] = None
    document_id: Annotated[str | None, Meta(description="The agent's document, for a passage of one.")] = None
    page: Annotated[int | None, Meta(description="The page that it is on, counted from 1.")] = None
    url: Annotated[str | None, Meta(description="Where readers can open the source.")] = None
    file_name: Annotated[str | None, Meta(description="The name of the document's file.")] = None


class RetrievalPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="retrieval"):
    """Passages found before the reply or by a tool call."""

    query: Annotated[str, Meta(description="What was searched for, as text.")]
    hits: Annotated[Sequence[RetrievalHitView], Meta(description="What was found, the best match first.")]
    iteration: Iteration
    tool_call_id: Annotated[
        str | None, Meta(description="The tool call that searched; missing before the reply.")
    ] = None
    superseded: Superseded = False


class FilePartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="file"):
    """A file that the user attached, an image that a tool returned, or output of another engine's run."""

    file_id: Annotated[
        str, Meta(description="What to download it with: `GET /api/files/{id}` or `/api/artifacts/{id}`.")
    ]
    file_name: Annotated[str, Meta(description="The name under which to save it.")]
    media_type: Annotated[str, Meta(description="What kind of file it is, such as `image/png`.")]
    size: Annotated[int, Meta(description="How many bytes the file has.")]
    iteration: Iteration
    width: Annotated[int | None, Meta(description="An image's width in pixels.")] = None
    height: Annotated[int | None, Meta(description="An image's height in pixels.")] = None
    pages: Annotated[int | None, Meta(description="How many pages a document has.")] = None
    tool_call_id: Annotated[str | None, Meta(description="The tool call that returned it, if one did.")] = (
        None
    )
    is_elsewhere: Annotated[
        bool, Meta(description="Only another engine has it, under its own `fileId`: no download.")
    ] = False
    superseded: Superseded = False


class CardPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="card"):
    """A briefing shown in a conversation."""

    briefing_id: Annotated[Id, Meta(description="The briefing that the card shows.")]
    title: Annotated[str, Meta(description="The briefing's headline, in one line.")]
    summary: Annotated[str, Meta(description="What the user and the model read.")]
    priority: Annotated[str, Meta(description="How urgent it is, from `P0` (most) to `P3`.")]
    sent_at: Annotated[Time, Meta(description="When the briefing was sent.")]
    data: Annotated[
        Mapping[str, Any] | None, Meta(description="What the briefing was sent with for clients to draw.")
    ]
    actions: Annotated[
        Sequence[Mapping[str, Any]], Meta(description="The buttons that the briefing was sent with.")
    ]
    iteration: Iteration
    superseded: Superseded = False


class QuestionPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="question"):
    """A question from the model or an MCP server; without `answer` while it is open."""

    request_id: Annotated[Id, Meta(description="The id with which the request is answered.")]
    message: Annotated[str, Meta(description="The question as the user reads it.")]
    expires_at: Annotated[Time, Meta(description="When the turn continues without an answer.")]
    iteration: Iteration
    tool_call_id: Annotated[str | None, Meta(description="The tool call that asks, if one does.")] = None
    schema: Annotated[Mapping[str, Any] | None, Meta(description="A JSON Schema of the answer.")] = None
    url: Annotated[str | None, Meta(description="The URL where the user answers.")] = None
    answer: Annotated[
        AnswerView | UnsetType, Meta(description="What the user answered; missing while it is open.")
    ] = UNSET
    superseded: Superseded = False


class UserTextPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="user_text"):
    """A message that steered the turn, at the point where it joined."""

    message_id: Annotated[str, Meta(description="The id of the message; empty in shares.")]
    text: Annotated[str, Meta(description="What the user wrote while the turn ran.")]
    iteration: Iteration
    superseded: Superseded = False


class StepPartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="step"):
    """A step of an agent in code."""

    step_id: Annotated[str, Meta(description="Unique in the turn; see `GET /api/turns/{id}/steps`.")]
    name: Annotated[str, Meta(description="The step's name in the agent's code.")]
    title: Annotated[str | None, Meta(description="What the user sees instead of the name.")]
    status: Annotated[
        StepStatus, Meta(description="`unknown`: it was cut off, and may or may not have taken effect.")
    ]
    started_at: Annotated[Time, Meta(description="When the step began, in UTC.")]
    duration_ms: Annotated[
        int | None, Meta(description="How long it took, in milliseconds; null while it runs.")
    ]
    iteration: Iteration
    agent: Annotated[str | None, Meta(description="The agent that it ran, if it ran one.")] = None
    parent_id: Annotated[str | None, Meta(description="The step that ran the agent whose step it is.")] = None
    superseded: Superseded = False


class NoticePartView(View, frozen=True, kw_only=True, omit_defaults=True, tag="notice"):
    """Something is unavailable; the turn continued."""

    code: Annotated[str, Meta(description="What happened, as a code that programs can compare.")]
    message: Annotated[str, Meta(description="What happened, in a sentence for people.")]
    iteration: Iteration
    superseded: Superseded = False


ShownPart = (
    TextPart
    | ThoughtPart
    | ToolCallPart
    | RetrievalPart
    | QuestionPart
    | UserTextPart
    | StepPart
    | NoticePart
    | FilePart
    | CardPart
)
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


def part_views(parts: Parts) -> list[PartView]:
    """The parts of a message; its `output` has a field of its own."""
    return [_part_view(part) for part in parts if not isinstance(part, OutputPart)]


def _part_view(part: ShownPart) -> PartView:
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
        parent_id=UNSET if part.parent_id is None else part.parent_id,
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
