"""A tool call: one use of a tool in a turn, with its result, stored as its own record.

A result has four stages, and each has one word: what the tool *returned* (`ports.tools.Returned`), what is
*stored* (`ToolResultStored` in the turn's log, then this record), what the model *reads*
(`context.tool_results.model_reads`), and what the page *shows* (the views in `wire`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import IllegalTransition
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, PayloadId, TurnId

MODEL_READS = "shown"
"""The name of the reference to what the model reads, if that isn't the whole result."""


def shown_refs(refs: Mapping[str, PayloadId]) -> dict[str, PayloadId]:
    """The references that stand for fields of a call; a page shows their values."""
    return {name: ref for name, ref in refs.items() if name != MODEL_READS}


def derived_id(turn_id: TurnId, tool_call_id: str) -> str:
    """An id that every provider accepts, for a call whose own id may not be unique."""
    name = f"{turn_id}\n{tool_call_id}"
    return f"call_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:32]}"


class ToolCallStatus(Choice):
    """The status of a call; every call ends in exactly one of the states other than `running`."""

    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    """Its tool received it, but whether it took effect is unknown."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; `tool_call_id` ties call and result together within the turn."""

    turn_id: TurnId
    tool_call_id: str
    message_id: MessageId
    tool_name: str
    server: str
    arguments: Mapping[str, object]
    status: ToolCallStatus
    created_at: int
    result: object = None
    error: str | None = None
    chart_data: object = None
    duration_ms: int | None = None
    artifact_ids: tuple[PayloadId, ...] = ()
    model_name: str = ""
    """The model's name for the tool, which later requests keep. Empty for other engines' calls."""
    refs: Mapping[str, PayloadId] = field(default_factory=dict[str, PayloadId])
    """The fields whose values are in the payload store."""

    @property
    def sent_id(self) -> str:
        """The call's id for models, which they also use to read its result again; unique in a conversation.

        Ids of our models' calls were made unique on arrival. Those of older or imported records may repeat
        from turn to turn.
        """
        return self.tool_call_id if self.model_name else derived_id(self.turn_id, self.tool_call_id)

    def end(
        self,
        status: ToolCallStatus,
        *,
        result: object = None,
        error: str | None = None,
        chart_data: object = None,
        duration_ms: int | None = None,
        artifact_ids: tuple[PayloadId, ...] = (),
        refs: Mapping[str, PayloadId] | None = None,
    ) -> "ToolCall":
        """Gives the call its one result."""
        if self.status is not ToolCallStatus.RUNNING or status is ToolCallStatus.RUNNING:
            raise IllegalTransition(f"A tool call can't go from {self.status} to {status}.", param="status")
        return replace(
            self,
            status=status,
            result=result,
            error=error,
            chart_data=chart_data,
            duration_ms=duration_ms,
            artifact_ids=artifact_ids,
            refs={**self.refs, **(refs or {})},
        )


@dataclass(frozen=True, slots=True)
class ToolCallFilter:
    """A filter for a user's tool calls; `since` is inclusive, `until` exclusive."""

    conversation_id: ConversationId | None = None
    tool_name: str | None = None
    status: ToolCallStatus | None = None
    turn_id: TurnId | None = None
    since: int | None = None
    until: int | None = None
    agents: frozenset[AgentId] | None = None
    """Only those in conversations with one of these agents."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool call, and the conversation that it was made in."""

    call: ToolCall
    conversation_id: ConversationId
