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
from threadkeep.wire.parts import PartView, part_views
from threadkeep.wire.view import (
    CreatedAt,
    Id,
    OfConversation,
    OwnId,
    RunAlias,
    Time,
    View,
    rfc3339,
    time_or_none,
)


class ThoughtStepView(View, frozen=True, kw_only=True, omit_defaults=True):
    """One step of the agent's reasoning."""

    kind: Annotated[
        str, Meta(description="What it is: `thought`, `tool`, `retrieval`, `question`, `notice` or `node`.")
    ]
    title: Annotated[str, Meta(description="A headline for the step.")]
    detail: Annotated[str, Meta(description="More about the step, such as the text of a thought.")]
    started_at: Annotated[Time, Meta(description="When the step began, in UTC.")]
    duration_ms: Annotated[int, Meta(description="How long it took, in milliseconds.")]
    tool_call_id: Annotated[str | None, Meta(description="The tool call that it is about, if any.")] = None


class CitationView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A source that the answer cites as [index]."""

    index: Annotated[int, Meta(description="The number that the answer's text cites, from 1.")]
    title: Annotated[str, Meta(description="What readers see as the source's name.")]
    snippet: Annotated[str, Meta(description="The start of the passage, at most 300 characters.")]
    score: Annotated[float, Meta(description="How well the passage matched, from 0 to 1.")]
    url: Annotated[str | None, Meta(description="Where readers can open the source.")] = None
    file_name: Annotated[str | None, Meta(description="The name of the document's file.")] = None
    document_id: Annotated[str | None, Meta(description="The agent's document, if it is from one.")] = None
    page: Annotated[int | None, Meta(description="The page that it is on, counted from 1.")] = None


class ToolCallView(View, frozen=True, kw_only=True):
    """A tool call."""

    tool_call_id: Annotated[str, Meta(description="The call's id within its turn.")]
    tool_name: Annotated[str, Meta(description="The tool that was called.")]
    server: Annotated[str, Meta(description="The MCP server that the tool belongs to.")]
    arguments: Annotated[Mapping[str, Any], Meta(description="What the tool was called with.")]
    status: Annotated[ToolCallStatus, Meta(description="Whether it runs, waits or ended, and how.")]
    result: Annotated[Any, Meta(description="What the tool returned; null until it ended.")]
    duration_ms: Annotated[
        int | None, Meta(description="How long it took, in milliseconds; null until it ended.")
    ]
    error: Annotated[str | UnsetType, Meta(description="Why it failed, if it did.")] = UNSET
    chart_data: Annotated[
        Any | UnsetType, Meta(description="A chart of the result, for clients to draw.")
    ] = UNSET


class UsageView(View, frozen=True, kw_only=True):
    """Tokens spent; `estimated` if the provider gave no numbers.

    `inputTokens` counts all of the input, including what the provider read from its cache or wrote to it.
    """

    input_tokens: Annotated[int, Meta(description="The tokens of all input, cached ones included.")]
    output_tokens: Annotated[int, Meta(description="The tokens that the model wrote.")]
    cache_read_tokens: Annotated[
        int, Meta(description="The part of the input that came from the provider's cache.")
    ]
    cache_write_tokens: Annotated[
        int, Meta(description="The part of the input that was written to the cache.")
    ]
    estimated: Annotated[
        bool, Meta(description="Whether the provider gave no numbers, so that these are estimates.")
    ]


class CostView(View, frozen=True, kw_only=True):
    """What something has cost."""

    amount: Annotated[str, Meta(description="An exact decimal number, as a text.")]
    currency: Annotated[str, Meta(description="The server's currency, such as `USD`.")]


class FailureView(View, frozen=True, kw_only=True):
    """Why a message failed."""

    code: Annotated[str, Meta(description="What happened, as an error code that programs can compare.")]
    message: Annotated[str, Meta(description="What happened and what to do, for people.")]
    retryable: Annotated[bool, Meta(description="Whether sending the same again may succeed.")]


class BriefingCardView(View, frozen=True, kw_only=True):
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

    id: OwnId
    conversation_id: OfConversation
    seq: Annotated[int, Meta(description="Its number in the conversation, which only grows.")]
    parent_id: Annotated[
        Id | None, Meta(description="The message before it on its branch; null for the first.")
    ]
    siblings: Annotated[SiblingsView | UnsetType, Meta(description="Only if there are several.")] = UNSET
    turn_id: Annotated[Id | None, Meta(description="The turn that it belongs to; null for what was added.")]
    run_id: RunAlias
    role: Annotated[MessageRole, Meta(description="Who wrote it: the user, the assistant or the system.")]
    content_type: Annotated[
        ContentType, Meta(description="Whether `content` is a text or a briefing's card.")
    ]
    content: Annotated[
        str | BriefingCardView, Meta(description="Its text, or an object for a briefing's card.")
    ]
    parts: Annotated[Sequence[PartView], Meta(description="All that it consists of, in order of arrival.")]
    status: Annotated[
        MessageStatus, Meta(description="Whether it is complete, still written, failed or stopped.")
    ]
    thought_process: Annotated[
        Sequence[ThoughtStepView],
        Meta(description="The steps of its reasoning and its tool calls, for display."),
    ]
    citations: Annotated[
        Sequence[CitationView], Meta(description="The sources that the text cites as [index].")
    ]
    artifact_ids: Annotated[
        Sequence[str],
        Meta(description="The files that its tools made; `GET /api/artifacts/{id}` downloads one."),
    ]
    tool_calls: Annotated[Sequence[ToolCallView], Meta(description="The tool calls among its parts.")]
    token_count: Annotated[int | None, Meta(description="Its length in tokens; null if it isn't known.")]
    usage: Annotated[
        UsageView | None, Meta(description="The tokens that its turn used; null for users' messages.")
    ]
    model: Annotated[
        str | None, Meta(description="The model that answered, as `gateway/model`; null for users' messages.")
    ]
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")] = None
    archived: Annotated[bool, Meta(description="Whether a summary replaces it in the model's context.")]
    created_at: CreatedAt
    completed_at: Annotated[Time | None, Meta(description="When it was complete; null while it is written.")]
    error: Annotated[FailureView | UnsetType, Meta(description="Why the turn failed, if it did.")] = UNSET
    output: Annotated[
        Any | UnsetType,
        Meta(description="The reply as a value, where it is structured: what its text says as JSON."),
    ] = UNSET
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
        parts=part_views(parts),
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
        output=UNSET if is_plain or (output := message.output) is None else output,
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
