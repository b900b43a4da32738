"""A message: one entry of a conversation, and the states it may pass through."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import (
    IllegalTransition,
    InvalidRequest,
    MessageContentRequired,
    MessageTooLong,
)
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.text import check_storable, is_blank
from threadkeep.domain.tool_call import ToolCall


class MessageRole(Choice):
    """Who wrote it. Tool calls are records of their own, not messages."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class ContentType(Choice):
    """What the content is: a text, or a briefing shown as a card."""

    TEXT = "text"
    BRIEFING_CARD = "briefing_card"


class MessageStatus(Choice):
    """Where a message is on its way: it is asked for, streams, and ends; a reply may be regenerated."""

    PENDING = "PENDING"
    STREAMING = "STREAMING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    OVERWRITTEN = "OVERWRITTEN"


_ENDS = frozenset({MessageStatus.COMPLETED, MessageStatus.FAILED, MessageStatus.CANCELLED})

NEXT_STATUSES: Mapping[MessageStatus, frozenset[MessageStatus]] = {
    MessageStatus.PENDING: frozenset(
        {MessageStatus.STREAMING, MessageStatus.FAILED, MessageStatus.CANCELLED}
    ),
    MessageStatus.STREAMING: _ENDS,
    **{end: frozenset({MessageStatus.OVERWRITTEN}) for end in _ENDS},
    MessageStatus.OVERWRITTEN: frozenset(),
}


def check_step(before: MessageStatus, after: MessageStatus) -> None:
    """Refuses a step that the state machine does not have."""
    if after not in NEXT_STATUSES[before]:
        raise IllegalTransition(f"A message cannot go from {before} to {after}.", param="status")


@dataclass(frozen=True, slots=True)
class ThoughtStep:
    """One step of how the agent came to its answer, for the folding card."""

    kind: str
    title: str
    detail: str
    started_at: int
    duration_ms: int
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """One source that the answer refers to as [index]."""

    index: int
    title: str
    snippet: str
    score: float
    url: str | None = None
    file_name: str | None = None
    document_id: str | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were spent; `estimated` where the provider gave no numbers."""

    input_tokens: int
    output_tokens: int
    estimated: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        """What both were; estimated where one of them is."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message or a turn failed, in the contract's codes."""

    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation. The content of a finished message never changes."""

    id: MessageId
    conversation_id: ConversationId
    seq: int
    turn_id: TurnId | None
    role: MessageRole
    content: str | BriefingCard
    status: MessageStatus
    created_at: int
    completed_at: int | None = None
    thought_process: tuple[ThoughtStep, ...] = ()
    citations: tuple[Citation, ...] = ()
    artifact_ids: tuple[PayloadId, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    token_count: int | None = None
    usage: Usage | None = None
    model: str | None = None
    error: Failure | None = None

    def __post_init__(self) -> None:
        # Looked at first because it is quick, and pages have many messages.
        if type(self.role) is not MessageRole or type(self.status) is not MessageStatus:
            MessageRole(self.role)
            MessageStatus(self.status)
        if isinstance(self.content, BriefingCard):
            if self.role is not MessageRole.SYSTEM:
                raise InvalidRequest("A briefing card has the role `system`.", param="role")
        elif is_blank(self.content) and not self._may_be_empty:
            raise MessageContentRequired("A message needs content that is not blank.", param="content")

    @property
    def _may_be_empty(self) -> bool:
        return self.role is MessageRole.ASSISTANT and self.status is not MessageStatus.COMPLETED

    @property
    def content_type(self) -> ContentType:
        """What kind of content it is."""
        return ContentType.TEXT if isinstance(self.content, str) else ContentType.BRIEFING_CARD

    def become(self, status: MessageStatus) -> "Message":
        """Takes one step of the state machine; any other step is refused."""
        check_step(self.status, status)
        return replace(self, status=status)

    def finish(
        self,
        status: MessageStatus,
        content: str,
        now: int,
        *,
        usage: Usage | None = None,
        error: Failure | None = None,
    ) -> "Message":
        """Ends a reply with the text that arrived."""
        if status not in _ENDS:
            raise IllegalTransition(f"{status} does not end a message.", param="status")
        # A reply that is finished in one go was never seen streaming, but it has passed that state.
        pending = self.status is MessageStatus.PENDING
        check_step(MessageStatus.STREAMING if pending else self.status, status)
        return replace(
            self,
            status=status,
            content=check_storable(content, "content"),
            completed_at=now,
            usage=usage,
            token_count=usage.output_tokens if usage else None,
            error=error,
        )


def check_user_content(content: str, *, most: int) -> str:
    """What a user may send: something to read, within the agent's limit (0 = none)."""
    if is_blank(content):
        raise MessageContentRequired("A message needs content that is not blank.", param="content")
    if most and len(content) > most:
        raise MessageTooLong(
            f"A message to this agent may have at most {most} characters; this one has {len(content)}.",
            param="content",
            details={"most": most, "length": len(content)},
        )
    return check_storable(content, "content")
