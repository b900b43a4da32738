"""What clients see of turns and of what they cost."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.turn import TurnStatus
from threadkeep.wire.messages import FailureView, UsageView
from threadkeep.wire.view import Id, RunAlias, Time, View


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


class SentFileView(View, frozen=True, kw_only=True):
    """A file that the model was sent as it is, and what we take it to cost in tokens."""

    type: Literal["image", "document"]
    file_name: str
    tokens: int


class ReceiptView(View, frozen=True, kw_only=True):
    """What the model was sent in a turn; the same request can be built from it again.

    `sha256` names the system prompt and the messages: where it is the same, the model was told the same.
    """

    turn_id: Id
    sha256: str
    model: str | None
    components: Sequence[ComponentReceiptView]
    summary: str | None
    message_ids: Sequence[Id]
    thoughts: bool
    tools: Sequence[str]
    temperature: float | None
    max_tokens: int | None
    token_estimate: int
    dropped_messages: int
    shortened_results: Annotated[
        Sequence[str],
        Meta(description="The tool calls whose results, and the files, that were sent in their short form."),
    ]
    files: Annotated[
        Sequence[SentFileView],
        Meta(description="The images and PDFs that were sent as they are; other files are text."),
    ]
    prefix_share: Annotated[
        float | None,
        Meta(description="How much of the request equals the start of the previous one, from 0 to 1."),
    ]


class DayUsageView(View, frozen=True, kw_only=True):
    """One's turns with one agent on one day (UTC); `estimated` where some numbers are.

    `inputTokens` counts all of the input: `cacheReadTokens` is how much of it the provider had in its cache.
    """

    date: date
    agent_id: Id
    turns: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated: bool


class UsageReportView(View, frozen=True, kw_only=True):
    """What one has spent, oldest day first."""

    items: Sequence[DayUsageView]


class RunningTurnView(View, frozen=True, kw_only=True):
    """A turn that runs. `stalled`: its node has not been heard of; it is ended soon, by itself."""

    id: Id
    conversation_id: Id
    user_id: str
    agent_id: Id
    node_id: str
    model: str | None
    started_at: Time
    state: Literal["running", "aborting", "stalled"]


class StoppedTurnView(View, frozen=True, kw_only=True):
    """A turn that an admin has stopped; `IDLE` when it had ended by itself."""

    turn_id: Id
    status: Literal["GENERATION_ABORTED", "IDLE"]


class AbortView(View, frozen=True, kw_only=True, omit_defaults=True):
    """What was stopped; `IDLE` when nothing ran."""

    status: Literal["GENERATION_ABORTED", "IDLE"]
    turn_id: Id | None = None
    message_id: Id | None = None
    content: str | None = None
