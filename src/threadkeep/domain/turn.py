"""A turn: one request of a user and everything that the agent does for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from threadkeep.domain.choice import Choice
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import IllegalTransition
from threadkeep.domain.ids import AgentId, ConversationId, KeyId, MessageId, TurnId, UserId
from threadkeep.domain.message import Failure, MessageStatus, Usage


class TurnStatus(Choice):
    """A turn runs, may wait for its user, and ends in one of three ways."""

    RUNNING = "RUNNING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TurnOrigin(Choice):
    """Where a turn ran: here, holding a lease, or in another engine that reported it afterwards."""

    LIVE = "live"
    RECORDED = "recorded"


ACTIVE = frozenset({TurnStatus.RUNNING, TurnStatus.WAITING})
"""A conversation has at most one live turn in these."""

ENDS: Mapping[MessageStatus, TurnStatus] = {
    MessageStatus.COMPLETED: TurnStatus.COMPLETED,
    MessageStatus.FAILED: TurnStatus.FAILED,
    MessageStatus.CANCELLED: TurnStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunWith:
    """What the request that began a turn brought with it, for clients that speak other protocols."""

    protocol: str | None = None
    run_id: str | None = None
    """The client's own id of this run."""
    asked_model: str | None = None
    """The model as the client named it."""
    tools: tuple[ClientTool, ...] = ()
    """Tools that the client runs."""
    leaves_queue: bool = False
    """Whether what was queued before it stays held after it: it went first by stopping the turn before."""
    instructions: str | None = None
    """Instructions for the model in this turn, after its agent's own prompt."""
    temperature: float | None = None
    """What the model calls of this turn use instead of the agent's setting."""
    max_tokens: int | None = None
    """The most that each model call may write; the agent's own limit still holds."""
    output: Mapping[str, Any] | None = None
    """The JSON schema that the reply must fit, instead of the agent's own."""
    tool_choice: str | None = None
    """The tool of the client that the first model call must make, or "" for any; None: the model decides."""
    request_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the request that its protocol shows again to those who read the turn later."""
    stops_unfollowed: bool = False
    """Whether the turn ends when nobody follows it."""


@dataclass(frozen=True, slots=True)
class TurnCode:
    """The program that a turn needs: its agent is one."""

    key: str
    version: int | None = None
    """Of the code that began to run it; None as long as none has."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of the agent. At most one live turn runs in a conversation."""

    id: TurnId
    conversation_id: ConversationId
    user_message_id: MessageId
    assistant_message_id: MessageId
    status: TurnStatus
    started_at: int
    origin: TurnOrigin = TurnOrigin.LIVE
    model: str | None = None
    ended_at: int | None = None
    last_event_seq: int = 0
    usage: Usage | None = None
    error: Failure | None = None
    key_id: KeyId | None = None
    """The API key that began it; None if its user did so themselves."""
    begun_with: BegunWith | None = None
    code: TurnCode | None = None
    """Set if its agent is a program."""

    @property
    def is_active(self) -> bool:
        """Whether it hasn't ended."""
        return self.status in ACTIVE

    @property
    def stops_unfollowed(self) -> bool:
        """Whether it ends when nobody follows it."""
        return self.begun_with is not None and self.begun_with.stops_unfollowed

    def end(
        self, status: TurnStatus, now: int, *, usage: Usage | None = None, error: Failure | None = None
    ) -> "Turn":
        """Ends the turn, once."""
        if not self.is_active or status in ACTIVE:
            raise IllegalTransition(f"A turn can't go from {self.status} to {status}.", param="status")
        # Another node may end it, by its own clock.
        return replace(self, status=status, ended_at=max(now, self.started_at), usage=usage, error=error)


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn, and the id another engine recorded it under."""

    turn: Turn
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run of a program for a turn, as long as its node holds the turn."""

    turn: Turn
    user_id: UserId
    agent_id: AgentId
    fence: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of a node to write a turn, for `length_ms` from now by the database's clock."""

    node_id: str
    fence: int
    length_ms: int


@dataclass(frozen=True, slots=True)
class OpenStep:
    """What a turn's program does: the oldest of its steps that have begun and not ended."""

    name: str
    since: int


WaitsFor = Literal["person", "worker"]
"""What a turn waits for: somebody's decision, or a process that runs its program."""


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that runs on some node or waits, without its content."""

    id: TurnId
    conversation_id: ConversationId
    user_id: UserId
    agent_id: AgentId
    node_id: str | None
    """None if no node runs it at the moment."""
    model: str | None
    started_at: int
    is_aborting: bool
    is_stalled: bool
    code: TurnCode | None = None
    """Set if its agent is a program."""
    step: OpenStep | None = None
    """What the program does, as its node said last."""
    waits_for: WaitsFor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFilter:
    """Which active turns to list; None: whatever it is."""

    code_key: str | None = None
    """Of the program that is their agent."""
    step: str | None = None
    older_than_ms: int | None = None
    waits_for: WaitsFor | Literal["nothing"] | None = None


ALL_ACTIVE = ActiveFilter()
