"""A message: one entry of a conversation, and its state machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import (
    IllegalTransition,
    InvalidRequest,
    MessageContentRequired,
    MessageTooLong,
)
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.money import Cost, add_costs
from threadkeep.domain.parts import (
    FilePart,
    Parts,
    TextPart,
    ThoughtPart,
    ThoughtStep,
    artifact_ids_of,
    card_of,
    citations_of,
    content_of,
    is_one_text,
    output_of,
    thought_process_of,
    tool_calls_of,
)
from threadkeep.domain.retrieval import Citation
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
    """A message's state: it is pending, streams, and ends; a reply may be regenerated."""

    PENDING = "PENDING"
    STREAMING = "STREAMING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    OVERWRITTEN = "OVERWRITTEN"


MANY_PARTS, MUCH_TEXT = 300, 1 << 20
"""A reply with more parts, or characters, is made and encoded beside the event loop."""

ENDS = frozenset({MessageStatus.COMPLETED, MessageStatus.FAILED, MessageStatus.CANCELLED})

NEXT_STATUSES: Mapping[MessageStatus, frozenset[MessageStatus]] = {
    MessageStatus.PENDING: frozenset(
        {MessageStatus.STREAMING, MessageStatus.FAILED, MessageStatus.CANCELLED}
    ),
    MessageStatus.STREAMING: ENDS,
    **{end: frozenset({MessageStatus.OVERWRITTEN}) for end in ENDS},
    MessageStatus.OVERWRITTEN: frozenset(),
}


def check_step(before: MessageStatus, after: MessageStatus) -> None:
    """Refuses a step that the state machine doesn't allow."""
    if after not in NEXT_STATUSES[before]:
        raise IllegalTransition(f"A message can't go from {before} to {after}.", param="status")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent; `estimated` if the provider reported no numbers.

    `input_tokens` counts the whole input, including what was read from or written to the provider's cache.
    """

    input_tokens: int
    output_tokens: int
    estimated: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: Cost | None = None
    """What it cost; None if the price is unknown."""

    def __add__(self, other: "Usage") -> "Usage":
        """The sum of both; estimated if one of them is. Its cost is unknown if the cost of one of them is."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            estimated=self.estimated or other.estimated,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost=self._cost_with(other),
        )

    def _cost_with(self, other: "Usage") -> Cost | None:
        """The cost of both; what used nothing costs nothing."""
        if not self._has_tokens:
            return other.cost
        return add_costs(self.cost, other.cost) if other._has_tokens else self.cost

    @property
    def _has_tokens(self) -> bool:
        return bool(self.input_tokens or self.output_tokens)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message or a turn failed, in the contract's codes."""

    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation: parts in order of arrival. A finished message never changes.

    `status` is its current or final state, on the path or not; clients see `shown_status`.
    """

    id: MessageId
    conversation_id: ConversationId
    seq: int
    turn_id: TurnId | None
    role: MessageRole
    parts: Parts
    status: MessageStatus
    created_at: int
    completed_at: int | None = None
    token_count: int | None = None
    usage: Usage | None = None
    model: str | None = None
    error: Failure | None = None
    parent_id: MessageId | None = None
    on_path: bool = True
    """Whether it is on the path that is shown, continued and sent to the model."""

    def __post_init__(self) -> None:
        # First because it is quick, and pages have many messages.
        if type(self.role) is not MessageRole or type(self.status) is not MessageStatus:
            MessageRole(self.role)
            MessageStatus(self.status)
        if self.status is MessageStatus.OVERWRITTEN:
            raise IllegalTransition(
                "A message outside the active path keeps its final status.", param="status"
            )
        if card_of(self.parts):
            if self.role is not MessageRole.SYSTEM:
                raise InvalidRequest("A briefing card must have the role `system`.", param="role")
        elif is_blank(self.text) and not self._may_be_empty:
            raise MessageContentRequired("A message can't be blank.", param="content")

    @property
    def _may_be_empty(self) -> bool:
        if self.role is MessageRole.ASSISTANT:
            return self.status is not MessageStatus.COMPLETED
        return any(isinstance(part, FilePart) for part in self.parts)

    @property
    def is_large(self) -> bool:
        """Whether encoding it would keep the event loop."""
        texts = (part.text for part in self.parts if isinstance(part, TextPart | ThoughtPart))
        return len(self.parts) > MANY_PARTS or sum(map(len, texts)) > MUCH_TEXT

    @property
    def shown_status(self) -> MessageStatus:
        """The status that clients see: a finished message off the path appears as overwritten."""
        return self.status if self.on_path or self.status not in ENDS else MessageStatus.OVERWRITTEN

    @property
    def text(self) -> str:
        """Its text; empty for a card."""
        return content_of(self.parts)

    @property
    def output(self) -> Any:
        """The reply as a value, if it is structured."""
        return output_of(self.parts)

    @property
    def content(self) -> str | BriefingCard:
        """Its text, or the briefing that it shows."""
        return card_of(self.parts) or content_of(self.parts)

    @property
    def content_type(self) -> ContentType:
        """The kind of its content."""
        return ContentType.BRIEFING_CARD if card_of(self.parts) else ContentType.TEXT

    @property
    def thought_process(self) -> tuple[ThoughtStep, ...]:
        """How the agent reached its reply, step by step."""
        return thought_process_of(self.parts)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order in which the model made them."""
        return tool_calls_of(self.parts)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources that the reply may refer to."""
        return citations_of(self.parts)

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files that a user attached, or the images that tools returned."""
        if is_one_text(self.parts):
            return ()
        is_user = self.role is MessageRole.USER
        files = (part for part in self.parts if isinstance(part, FilePart))
        return tuple(part for part in files if is_user or part.tool_call_id)

    @property
    def artifact_ids(self) -> tuple[PayloadId, ...]:
        """The files that the turn produced; for a user's message, see `files`."""
        return artifact_ids_of(self.parts) if self.role is MessageRole.ASSISTANT else ()

    def become(self, status: MessageStatus) -> "Message":
        """Takes one step of the state machine; refuses an illegal one."""
        check_step(self.shown_status, status)
        if status is MessageStatus.OVERWRITTEN:
            return replace(self, on_path=False)
        return replace(self, status=status)

    def finish(
        self,
        status: MessageStatus,
        parts: Parts,
        now: int,
        *,
        usage: Usage | None = None,
        error: Failure | None = None,
    ) -> "Message":
        """Ends a reply with the parts that arrived."""
        if status not in ENDS:
            raise IllegalTransition(f"{status} is not a final message status.", param="status")
        # A reply that arrives in one piece has also passed the streaming state.
        pending = self.status is MessageStatus.PENDING
        check_step(MessageStatus.STREAMING if pending else self.shown_status, status)
        check_storable(content_of(parts), "content")
        return replace(
            self,
            status=status,
            parts=parts,
            completed_at=now,
            usage=usage,
            token_count=usage.output_tokens if usage else None,
            error=error,
        )


def check_user_content(content: str, *, most: int, has_files: bool = False, param: str = "content") -> str:
    """Refuses blank text without files, and text beyond the agent's limit (0 = no limit)."""
    if is_blank(content) and not has_files:
        raise MessageContentRequired("A message can't be blank.", param=param)
    if most and len(content) > most:
        raise MessageTooLong(
            f"Messages to this agent can have at most {most} characters; yours has {len(content)}.",
            param=param,
            details={"most": most, "length": len(content)},
        )
    return check_storable(content, param)


@dataclass(frozen=True, slots=True)
class SaidHit:
    """A message that was found, or a conversation by its title (without a message).

    `snippet` is text as a reader sees it, not Markdown; `highlights` are the positions of the words in it:
    begin and end of each.
    """

    entry_id: int
    conversation_id: ConversationId
    agent_id: AgentId
    title: str | None
    message_id: MessageId | None
    seq: int | None
    role: MessageRole | None
    snippet: str
    highlights: Sequence[tuple[int, int]]
    created_at: int
    on_path: bool = True
    """Whether it is on the conversation's active path."""


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """A range of a conversation's messages; the bounds are exclusive."""

    after_seq: int = 0
    before_seq: int | None = None
    newest_first: bool = False
    with_overwritten: bool = False
