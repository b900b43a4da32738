"""Turn events: everything that happens in a turn, numbered from 1 without gaps.

The log of these events is the only source of live streams, replays and messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from threadkeep.domain.approval import ApprovalAction, ApprovalKind, ApprovalScope
from threadkeep.domain.ids import PayloadId, TurnId
from threadkeep.domain.ledger import Charge
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Cost
from threadkeep.domain.parts import StepStatus
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class TurnStart:
    """The turn begins."""

    type: ClassVar[str] = "turn_start"
    conversation_id: str
    user_message_id: str
    message_id: str
    model: str | None

    @staticmethod
    def of(turn: Turn) -> "TurnStart":
        """The first event of a turn. A program may ask no model, or others."""
        model = turn.model if turn.code is None else None
        return TurnStart(turn.conversation_id, turn.user_message_id, turn.assistant_message_id, model)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Documents or memories were found. There is no such event without hits."""

    type: ClassVar[str] = "retrieval"
    query: str
    hits: tuple[RetrievalHit, ...]
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class IterationStart:
    """The model is about to be called, for the first time or after tools."""

    type: ClassVar[str] = "iteration_start"
    iteration: int
    step_id: str | None = None
    """In a turn of an agent in code: the step or model call whose text follows; "" for the program itself."""
    is_checked: bool = False
    """Whether a reply must fit a JSON schema: one that doesn't is asked for again, or fails the turn."""


@dataclass(frozen=True, slots=True)
class TurnResumed:
    """Another node, or the same one after its restart, continues the turn; `attempt` counts losses."""

    type: ClassVar[str] = "turn_resumed"
    attempt: int


@dataclass(frozen=True, slots=True)
class IterationRestart:
    """An interrupted model call starts again: its events from `from_seq` on are superseded."""

    type: ClassVar[str] = "iteration_restart"
    iteration: int
    from_seq: int = 0
    """Where the call began; 0 until its log, which numbers the events, fills it in."""
    step_id: str | None = None
    """In a turn of an agent in code: whose text is superseded. Calls, steps and questions stay."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The turn accepted a message that its user sent while it ran."""

    type: ClassVar[str] = "user_message"
    message_id: str
    content: str


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """The turn asks its user. `schema` describes the answer as a form; `url` is where they give it."""

    type: ClassVar[str] = "approval_request"
    request_id: str
    kind: ApprovalKind
    message: str
    expires_at: int
    tool_call_id: str | None = None
    schema: Mapping[str, Any] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalResponse:
    """The user's decision, or that the request expired."""

    type: ClassVar[str] = "approval_response"
    request_id: str
    action: ApprovalAction
    scope: ApprovalScope | None = None
    arguments: Mapping[str, Any] | None = None
    content: Any = None


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the model's reasoning."""

    type: ClassVar[str] = "thought"
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model called a tool. `refs` names the fields whose values are in the payload store."""

    type: ClassVar[str] = "tool_call"
    tool_call_id: str
    tool_name: str
    server: str
    arguments: Mapping[str, Any]
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])
    model_name: str = ""
    """The model's name for the tool. Only the server needs it; clients never see it."""
    asks: bool = False
    """Whether it waits for the user before it runs."""
    parent_id: str | None = None
    """The step that ran the agent that called it, unless that is the turn's own."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The tool reported progress."""

    type: ClassVar[str] = "tool_progress"
    tool_call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedImage:
    """An image that a tool returned or brought back. Only the server needs `refs`; clients never see it."""

    file_id: PayloadId
    file_name: str
    media_type: str
    size: int
    width: int
    height: int
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])


@dataclass(frozen=True, slots=True)
class ToolResultStored:
    """The one result of a tool call, as stored. `refs` names the fields whose values are in the payload
    store.
    """

    type: ClassVar[str] = "tool_result"
    tool_call_id: str
    tool_name: str
    status: Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]
    result: Any = None
    error: str | None = None
    duration_ms: int = 0
    chart_data: Any = None
    artifact_ids: tuple[str, ...] = ()
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])
    images: tuple[ReturnedImage, ...] = ()


@dataclass(frozen=True, slots=True)
class StepChanged:
    """A step of an agent in code began or ended: one event each, with the same `step_id`.

    One of kind `agent` ran another agent, whose name is in `agent`; what that did has its id as `parent_id`.
    """

    type: ClassVar[str] = "step"
    step_id: str
    name: str
    kind: Literal["step", "stream", "agent"]
    status: StepStatus
    title: str | None = None
    duration_ms: int | None = None
    parent_id: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something degraded, but the turn continues."""

    type: ClassVar[str] = "notice"
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The usage of a model call: the model that answered, and what it cost; each None if unknown."""

    type: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str | None = None
    cost: Cost | None = None

    @staticmethod
    def of(usage: Usage, model: str | None = None) -> "UsageReported":
        """The event that reports this usage of a model."""
        return UsageReported(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            estimated=usage.estimated,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            model=model,
            cost=usage.cost,
        )

    @property
    def usage(self) -> Usage:
        """The usage."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            estimated=self.estimated,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
            cost=self.cost,
        )


@dataclass(frozen=True, slots=True)
class Done:
    """The turn completed, or was stopped."""

    type: ClassVar[str] = "done"
    status: Literal["COMPLETED", "CANCELLED"]
    message_id: str
    usage: Usage
    stop_reason: str
    output: Any = None
    """The reply as a value, if it is structured."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn failed."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    retryable: bool = False


EventBody = (
    TurnStart
    | Retrieval
    | IterationStart
    | TurnResumed
    | IterationRestart
    | UserMessage
    | ApprovalRequest
    | ApprovalResponse
    | Thought
    | Text
    | ToolCalled
    | ToolProgress
    | ToolResultStored
    | StepChanged
    | Notice
    | UsageReported
    | Done
    | Failed
)
Terminal = Done | Failed


def joined(before: object, after: object) -> Text | Thought | None:
    """Two adjacent pieces of text, or of thought, as one; None for anything else."""
    match before, after:
        case Text(begun), Text(text):
            return Text(begun + text)
        case Thought(begun), Thought(text):
            return Thought(begun + text)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One event of a turn: its number, its time (ms) and its body."""

    turn_id: str
    seq: int
    at: int
    body: EventBody

    @property
    def is_terminal(self) -> bool:
        """Whether this is the turn's last event."""
        return isinstance(self.body, Done | Failed)


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A run of consecutive events of one turn, as the log writes them (`log/format.py`).

    One without events has journal entries, which belong to the events before them.
    """

    turn_id: TurnId
    first_seq: int
    last_seq: int
    events: str
    charges: tuple[Charge, ...] = ()
    """What its usage events add to the ledger when it is stored; none once it is read back."""

    @property
    def has_events(self) -> bool:
        """Whether it has more than journal entries."""
        return self.last_seq >= self.first_seq
