"""Views of turns and usage."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.turn import TurnStatus
from threadkeep.wire.messages import CostView, FailureView, UsageView
from threadkeep.wire.view import Id, RunAlias, Time, View


class StartedTurnView(View, frozen=True, kw_only=True):
    """A turn that has started."""

    turn_id: Id
    user_message_id: Id
    assistant_message_id: Id


class TurnView(View, frozen=True, kw_only=True):
    """A turn's status."""

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
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")] = None
    error: FailureView | None


class ComponentReceiptView(View, frozen=True, kw_only=True):
    """A part of the system prompt. Only the agent's owner and admins see `text`."""

    name: str
    sha256: str
    length: int
    truncated: bool
    text: str | UnsetType = UNSET


class SentFileView(View, frozen=True, kw_only=True):
    """A file sent to the model as is, with its estimated cost in tokens."""

    type: Literal["image", "document"]
    file_name: str
    tokens: int


class ReceiptView(View, frozen=True, kw_only=True):
    """What the model received in a turn; enough to rebuild the same request.

    `sha256` identifies the system prompt and the messages: if it is the same, the model received the same.
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
        Meta(description="The tool results and files that were sent in shortened form."),
    ]
    files: Annotated[
        Sequence[SentFileView],
        Meta(description="The images and PDFs that were sent as files; other files are sent as text."),
    ]
    prefix_share: Annotated[
        float | None,
        Meta(description="The share of the request that equals the start of the previous one, from 0 to 1."),
    ]


class DayUsageView(View, frozen=True, kw_only=True):
    """Your turns with one agent on one day (UTC); `estimated` if some numbers are estimates.

    `inputTokens` counts all input; `cacheReadTokens` is the part of it that the provider read from its cache.
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
    """Your usage, oldest day first."""

    items: Sequence[DayUsageView]


class RunningTurnView(View, frozen=True, kw_only=True):
    """A running turn. `stalled`: its node has stopped responding; another node takes it over soon."""

    id: Id
    conversation_id: Id
    user_id: str
    agent_id: Id
    node_id: str
    model: str | None
    started_at: Time
    state: Literal["running", "aborting", "stalled"]


class StoppedTurnView(View, frozen=True, kw_only=True):
    """A turn that an admin stopped; `IDLE` if it had already ended."""

    turn_id: Id
    status: Literal["GENERATION_ABORTED", "IDLE"]


class AbortView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The turn that was stopped; `IDLE` if none was running."""

    status: Literal["GENERATION_ABORTED", "IDLE"]
    turn_id: Id | None = None
    message_id: Id | None = None
    content: str | None = None
