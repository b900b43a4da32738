"""What clients see of the domain's values. Fields are camelCase on the wire."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from threadkeep.domain.agent import Agent, ConversationMode, RetrievalMode, Visibility
from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.conversation import Conversation, ConversationStatus
from threadkeep.domain.message import (
    Citation,
    ContentType,
    Failure,
    Message,
    MessageRole,
    MessageStatus,
    ThoughtStep,
    Usage,
)
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import TurnStatus
from threadkeep.domain.user import User, UserRole
from threadkeep.ports.store import AuditEntry

T = TypeVar("T")

Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
DomainAlias = Annotated[str, Meta(description="The same as `agentId`; some clients call agents domains.")]
RunAlias = Annotated[str | None, Meta(description="The same as `turnId`; some clients call turns runs.")]


class View(Struct, frozen=True, kw_only=True, rename="camel"):
    """The common form of all views."""


class PageView(View, Generic[T], frozen=True, kw_only=True):
    """A page of a list. `nextCursor` continues it; null at the end."""

    items: Sequence[T]
    next_cursor: str | None


class MeView(View, frozen=True, kw_only=True):
    """Who is signed in."""

    id: str
    role: UserRole


class HealthView(View, frozen=True, kw_only=True):
    """How the server is."""

    status: str
    version: str


class AgentSettingsView(View, frozen=True, kw_only=True):
    """An agent's limits and habits; 0 means no limit."""

    retrieval_top_k: int
    retrieval_threshold: float
    retrieval_mode: RetrievalMode
    context_messages: int
    context_thoughts: bool
    max_message_chars: int
    max_iterations: int
    generation_timeout_s: float
    conversation_mode: ConversationMode
    compaction_threshold: int
    auto_compact: bool
    temperature: float | None
    max_tokens: int | None


class AgentView(View, frozen=True, kw_only=True):
    """An agent. Its prompt, model and settings are shown to its owner and to admins only."""

    id: Id
    name: str
    description: str
    visibility: Visibility
    is_default: bool
    created_at: Time
    updated_at: Time
    owner_id: str | UnsetType | None = UNSET
    primary_role_id: str | UnsetType = UNSET
    system_prompt: str | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    settings: AgentSettingsView | UnsetType = UNSET
    version: int | UnsetType = UNSET


class ConversationView(View, frozen=True, kw_only=True):
    """A conversation without its messages. `sessionId` is given on create and detail only."""

    id: Id
    agent_id: Id
    domain_id: DomainAlias
    user_id: str
    title: str | None
    status: ConversationStatus
    is_main: bool
    metadata: Mapping[str, Any]
    active_turn_id: Id | None
    message_count: int
    started_at: Time
    created_at: Time
    updated_at: Time
    last_message_at: Time | None
    session_id: str | UnsetType = UNSET


class ThoughtStepView(View, frozen=True, kw_only=True, omit_defaults=True):
    """One step of how the agent came to its answer."""

    kind: str
    title: str
    detail: str
    started_at: Time
    duration_ms: int
    tool_call_id: str | None = None


class CitationView(View, frozen=True, kw_only=True, omit_defaults=True):
    """One source that the answer refers to as [index]."""

    index: int
    title: str
    snippet: str
    score: float
    url: str | None = None
    file_name: str | None = None
    document_id: str | None = None
    page: int | None = None


class ToolCallView(View, frozen=True, kw_only=True):
    """One use of a tool."""

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
    """Tokens that were spent; `estimated` where the provider gave no numbers."""

    input_tokens: int
    output_tokens: int
    estimated: bool


class FailureView(View, frozen=True, kw_only=True):
    """Why a message failed."""

    code: str
    message: str
    retryable: bool


class BriefingCardView(View, frozen=True, kw_only=True):
    """A briefing as it stands in a conversation."""

    briefing_id: Id
    title: str
    summary: str
    priority: str
    sent_at: Time
    data: Mapping[str, Any] | None
    actions: Sequence[Mapping[str, Any]]


class MessageView(View, frozen=True, kw_only=True):
    """One entry of a conversation. `content` is a string, or an object for a briefing card."""

    id: Id
    conversation_id: Id
    seq: int
    turn_id: Id | None
    run_id: RunAlias
    role: MessageRole
    content_type: ContentType
    content: str | BriefingCardView
    status: MessageStatus
    thought_process: Sequence[ThoughtStepView]
    citations: Sequence[CitationView]
    artifact_ids: Sequence[str]
    tool_calls: Sequence[ToolCallView]
    token_count: int | None
    usage: UsageView | None
    model: str | None
    archived: bool
    created_at: Time
    completed_at: Time | None
    error: FailureView | UnsetType = UNSET


class StartedTurnView(View, frozen=True, kw_only=True):
    """A turn that has begun."""

    turn_id: Id
    user_message_id: Id
    assistant_message_id: Id


class TurnView(View, frozen=True, kw_only=True):
    """How a turn stands."""

    id: Id
    run_id: RunAlias
    conversation_id: Id
    user_message_id: Id
    assistant_message_id: Id
    status: TurnStatus
    model: str | None
    started_at: Time
    ended_at: Time | None
    usage: UsageView | None
    error: FailureView | None


class ComponentReceiptView(View, frozen=True, kw_only=True):
    """A part of the system prompt. `text` is shown to the agent's owner and to admins only."""

    name: str
    sha256: str
    length: int
    truncated: bool
    text: str | UnsetType = UNSET


class ReceiptView(View, frozen=True, kw_only=True):
    """What the model was sent in a turn; the same request can be built from it again."""

    turn_id: Id
    model: str | None
    components: Sequence[ComponentReceiptView]
    summary: str | None
    message_ids: Sequence[Id]
    tools: Sequence[str]
    temperature: float | None
    max_tokens: int | None
    token_estimate: int
    dropped_messages: int


class DayUsageView(View, frozen=True, kw_only=True):
    """One's turns with one agent on one day (UTC); `estimated` where some numbers are."""

    date: date
    agent_id: Id
    turns: int
    input_tokens: int
    output_tokens: int
    estimated: bool


class UsageReportView(View, frozen=True, kw_only=True):
    """What one has spent, oldest day first."""

    items: Sequence[DayUsageView]


class AbortView(View, frozen=True, kw_only=True, omit_defaults=True):
    """What was stopped; `IDLE` when nothing ran."""

    status: Literal["GENERATION_ABORTED", "IDLE"]
    turn_id: Id | None = None
    message_id: Id | None = None
    content: str | None = None


class ConversationDetailView(ConversationView, frozen=True, kw_only=True):
    """A conversation with its latest messages, oldest first; `nextCursor` leads to the older ones."""

    messages: Sequence[MessageView]
    next_cursor: str | None
    summary: str | None


class ContextMessageView(View, frozen=True, kw_only=True):
    """One entry of a model's history."""

    role: str
    content: str


class ContextView(View, frozen=True, kw_only=True):
    """The latest messages, ready to send to a model; the summary of archived ones stands first."""

    messages: Sequence[ContextMessageView]


class AuditEntryView(View, frozen=True, kw_only=True):
    """Who changed which agent, and which of its fields."""

    id: Id
    at: Time
    actor_id: str
    action: str
    agent_id: Id | None
    details: Mapping[str, Any]


def rfc3339(milliseconds: int) -> str:
    """A time as RFC 3339 in UTC with milliseconds."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def time_or_none(milliseconds: int | None) -> str | None:
    """The same for a time that may be missing."""
    return None if milliseconds is None else rfc3339(milliseconds)


def agent_view(agent: Agent, user: User) -> AgentView:
    """An agent as this user may see it."""
    shown = AgentView(
        id=agent.id,
        name=agent.name,
        description=agent.description,
        visibility=agent.visibility,
        is_default=agent.is_default,
        created_at=rfc3339(agent.created_at),
        updated_at=rfc3339(agent.updated_at),
    )
    if not agent.is_open_to(user):
        return shown
    settings = {name: getattr(agent.settings, name) for name in AgentSettingsView.__struct_fields__}
    return replace(
        shown,
        owner_id=agent.owner_id,
        primary_role_id=agent.primary_role_id,
        system_prompt=agent.system_prompt,
        model=agent.model,
        settings=AgentSettingsView(**settings),
        version=agent.version,
    )


def conversation_view(conversation: Conversation, *, with_session: bool = False) -> ConversationView:
    """A conversation without its messages."""
    return ConversationView(**_conversation_fields(conversation, with_session=with_session))


def conversation_detail_view(
    conversation: Conversation, messages: Sequence[Message], *, next_cursor: str | None, summary: str | None
) -> ConversationDetailView:
    """A conversation with its latest messages."""
    return ConversationDetailView(
        **_conversation_fields(conversation, with_session=True),
        messages=message_views(conversation, messages),
        next_cursor=next_cursor,
        summary=summary,
    )


def _conversation_fields(conversation: Conversation, *, with_session: bool) -> dict[str, Any]:
    created_at = rfc3339(conversation.created_at)
    return {
        "id": conversation.id,
        "agent_id": conversation.agent_id,
        "domain_id": conversation.agent_id,
        "user_id": conversation.user_id,
        "title": conversation.title,
        "status": conversation.status,
        "is_main": conversation.is_main,
        "metadata": conversation.metadata,
        "active_turn_id": conversation.active_turn_id,
        "message_count": conversation.message_count,
        "started_at": created_at,
        "created_at": created_at,
        "updated_at": rfc3339(conversation.updated_at),
        "last_message_at": time_or_none(conversation.last_message_at),
        "session_id": conversation.session_id if with_session else UNSET,
    }


def message_views(conversation: Conversation, messages: Sequence[Message]) -> list[MessageView]:
    """Messages of one conversation; those that a summary stands for are flagged as archived."""
    return [
        message_view(message, archived=message.seq <= conversation.archived_to_seq) for message in messages
    ]


def message_view(message: Message, *, archived: bool = False) -> MessageView:
    """One message."""
    content = message.content
    return MessageView(
        id=message.id,
        conversation_id=message.conversation_id,
        seq=message.seq,
        turn_id=message.turn_id,
        run_id=message.turn_id,
        role=message.role,
        content_type=message.content_type,
        content=content if isinstance(content, str) else _card_view(content),
        status=message.status,
        thought_process=list(map(_thought_view, message.thought_process)),
        citations=list(map(_citation_view, message.citations)),
        artifact_ids=message.artifact_ids,
        tool_calls=list(map(_tool_call_view, message.tool_calls)),
        token_count=message.token_count,
        usage=usage_view(message.usage) if message.usage else None,
        model=message.model,
        archived=archived,
        created_at=rfc3339(message.created_at),
        completed_at=time_or_none(message.completed_at),
        error=failure_view(message.error) if message.error else UNSET,
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
    """What was spent."""
    return UsageView(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, estimated=usage.estimated
    )


def failure_view(failure: Failure) -> FailureView:
    """Why something failed."""
    return FailureView(code=failure.code, message=failure.message, retryable=failure.retryable)


def _tool_call_view(call: ToolCall) -> ToolCallView:
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


def audit_view(entry: AuditEntry) -> AuditEntryView:
    """One line of the audit."""
    return AuditEntryView(
        id=entry.id,
        at=rfc3339(entry.at),
        actor_id=entry.actor_id,
        action=entry.action,
        agent_id=entry.agent_id,
        details=entry.details,
    )
