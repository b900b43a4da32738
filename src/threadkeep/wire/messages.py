"""Views of messages."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import ContentType, Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.money import Cost
from threadkeep.domain.parts import TextPart, ThoughtStep, card_of
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.wire.feedback import FeedbackView, feedback_view
from threadkeep.wire.parts import PartView, part_view
from threadkeep.wire.view import Id, RunAlias, Time, View, rfc3339, time_or_none


class ThoughtStepView(View, frozen=True, kw_only=True, omit_defaults=True):
    """One step of the agent's reasoning."""

    kind: str
    title: str
    detail: str
    started_at: Time
    duration_ms: int
    tool_call_id: str | None = None


class CitationView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A source that the answer cites as [index]."""

    index: int
    title: str
    snippet: str
    score: float
    url: str | None = None
    file_name: str | None = None
    document_id: str | None = None
    page: int | None = None


class ToolCallView(View, frozen=True, kw_only=True):
    """A tool call."""

    tool_call_id: str
    tool_name: str
    server: str
    arguments: Mapping[str, Any]
    status: ToolCallStatus
    result: Any
    duration_ms: int | None
    error: str | UnsetType = UNSET
    chart_data: Any | UnsetType = UNSET


class UsageView(View, frozen=True, kw_only=True):
    """Tokens spent; `estimated` if the provider gave no numbers.

    `inputTokens` counts all of the input, including what the provider read from its cache or wrote to it.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated: bool


class CostView(View, frozen=True, kw_only=True):
    """What something has cost."""

    amount: Annotated[str, Meta(description="An exact decimal number.")]
    currency: str


class FailureView(View, frozen=True, kw_only=True):
    """Why a message failed."""

    code: str
    message: str
    retryable: bool


class BriefingCardView(View, frozen=True, kw_only=True):
    """A briefing shown in a conversation."""

    briefing_id: Id
    title: str
    summary: str
    priority: str
    sent_at: Time
    data: Mapping[str, Any] | None
    actions: Sequence[Mapping[str, Any]]


class SiblingsView(View, frozen=True, kw_only=True):
    """The messages with the same parent: versions of a question, or answers to it."""

    ids: Annotated[Sequence[Id], Meta(description="Oldest first. If there are more than 1,000, the nearest.")]
    index: Annotated[int, Meta(description="This message's position among them, from 0.")]


class MessageView(View, frozen=True, kw_only=True):
    """An entry of a conversation: its parts, in order of arrival.

    `content` is their text, with a blank line where a tool call or another model call comes between, or an
    object for a briefing card. `thoughtProcess`, `citations`, `artifactIds` and `toolCalls` are also views of
    the parts.
    """

    id: Id
    conversation_id: Id
    seq: int
    parent_id: Annotated[Id | None, Meta(description="The parent message.")]
    siblings: Annotated[SiblingsView | UnsetType, Meta(description="Only if there are several.")] = UNSET
    turn_id: Id | None
    run_id: RunAlias
    role: MessageRole
    content_type: ContentType
    content: str | BriefingCardView
    parts: Sequence[PartView]
    status: MessageStatus
    thought_process: Sequence[ThoughtStepView]
    citations: Sequence[CitationView]
    artifact_ids: Sequence[str]
    tool_calls: Sequence[ToolCallView]
    token_count: int | None
    usage: UsageView | None
    model: str | None
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")] = None
    archived: bool
    created_at: Time
    completed_at: Time | None
    error: FailureView | UnsetType = UNSET
    feedback: Annotated[FeedbackView | UnsetType, Meta(description="Your rating, if you gave one.")] = UNSET


def message_views(
    conversation: Conversation,
    messages: Sequence[Message],
    siblings: Mapping[MessageId, Sequence[MessageId]] | None = None,
    feedback: Mapping[MessageId, Feedback] | None = None,
) -> list[MessageView]:
    """Messages of a conversation; those replaced by a summary are marked as archived."""
    families, ratings = siblings or {}, feedback or {}
    return [
        message_view(
            message,
            archived=message.on_path and message.seq <= conversation.archived_to_seq,
            siblings=families.get(message.id, ()),
            feedback=ratings.get(message.id),
        )
        for message in messages
    ]


def message_view(
    message: Message,
    *,
    archived: bool = False,
    siblings: Sequence[str] = (),
    feedback: Feedback | None = None,
) -> MessageView:
    """A message; `siblings` are the messages with the same parent, including itself."""
    parts = message.parts
    card = card_of(parts)
    # Most messages are one text, and pages have many messages.
    is_plain = len(parts) == 1 and isinstance(parts[0], TextPart)
    return MessageView(
        id=message.id,
        conversation_id=message.conversation_id,
        seq=message.seq,
        parent_id=message.parent_id,
        siblings=SiblingsView(ids=siblings, index=siblings.index(message.id)) if siblings else UNSET,
        turn_id=message.turn_id,
        run_id=message.turn_id,
        role=message.role,
        content_type=ContentType.BRIEFING_CARD if card else ContentType.TEXT,
        content=_card_view(card) if card else message.text,
        parts=[part_view(part) for part in parts],
        status=message.shown_status,
        thought_process=() if is_plain else [_thought_view(it) for it in message.thought_process],
        citations=() if is_plain else [_citation_view(it) for it in message.citations],
        artifact_ids=() if is_plain else message.artifact_ids,
        tool_calls=() if is_plain else [tool_call_view(it) for it in message.tool_calls],
        token_count=message.token_count,
        usage=usage_view(message.usage) if message.usage else None,
        model=message.model,
        cost=cost_view(message.usage.cost if message.usage else None),
        archived=archived,
        created_at=rfc3339(message.created_at),
        completed_at=time_or_none(message.completed_at),
        error=failure_view(message.error) if message.error else UNSET,
        feedback=feedback_view(feedback) if feedback else UNSET,
    )


def _card_view(card: BriefingCard) -> BriefingCardView:
    return BriefingCardView(
        briefing_id=card.briefing_id,
        title=card.title,
        summary=card.summary,
        priority=card.priority,
        sent_at=rfc3339(card.sent_at),
        data=card.data,
        actions=card.actions,
    )


def _thought_view(step: ThoughtStep) -> ThoughtStepView:
    return ThoughtStepView(
        kind=step.kind,
        title=step.title,
        detail=step.detail,
        started_at=rfc3339(step.started_at),
        duration_ms=step.duration_ms,
        tool_call_id=step.tool_call_id,
    )


def _citation_view(citation: Citation) -> CitationView:
    return CitationView(**{name: getattr(citation, name) for name in CitationView.__struct_fields__})


def usage_view(usage: Usage) -> UsageView:
    """Tokens spent."""
    return UsageView(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        estimated=usage.estimated,
    )


def cost_view(cost: Cost | None) -> CostView | None:
    """What something has cost, if that is known."""
    return CostView(amount=cost.amount, currency=cost.currency) if cost else None


def failure_view(failure: Failure) -> FailureView:
    """Why something failed."""
    return FailureView(code=failure.code, message=failure.message, retryable=failure.retryable)


def tool_call_view(call: ToolCall) -> ToolCallView:
    """A tool call."""
    return ToolCallView(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        server=call.server,
        arguments=call.arguments,
        status=call.status,
        result=call.result,
        duration_ms=call.duration_ms,
        error=UNSET if call.error is None else call.error,
        chart_data=UNSET if call.chart_data is None else call.chart_data,
    )
