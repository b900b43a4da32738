"""Views of turns and usage."""

import datetime
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.turn import TurnStatus, WaitsFor
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
    waits_for: Annotated[
        WaitsFor | None,
        Meta(
            description="A person's decision, or a process that runs the program of its agent; `null` if it "
            "waits for neither."
        ),
    ] = None
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


class UsageSumView(View, frozen=True, kw_only=True):
    """The model calls of one group: those with the same date, agent and so on, as far as asked for.

    `inputTokens` counts all input; `cacheReadTokens` is the part of it that the provider read from its cache.
    `estimated` if some numbers are estimates.
    """

    date: Annotated[datetime.date | UnsetType, Meta(description="The day, in the operator's time zone.")] = (
        UNSET
    )
    user_id: str | UnsetType = UNSET
    agent_id: Id | UnsetType | None = UNSET
    key_id: Annotated[
        Id | UnsetType | None, Meta(description="The API key; `null` for calls without one.")
    ] = UNSET
    model: str | UnsetType | None = UNSET
    purpose: Annotated[str | UnsetType, Meta(description="turn, title, compaction, rerun or completion.")] = (
        UNSET
    )
    turns: int
    calls: int = 0
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated: bool
    cost: Annotated[
        CostView | None, Meta(description="Of the calls whose price is known; `null` if none is.")
    ] = None
    unpriced_calls: Annotated[int, Meta(description="The calls whose price isn't known.")] = 0
    reported_calls: Annotated[
        int, Meta(description="The calls that agents in code made themselves, and reported afterwards.")
    ] = 0
    reported_cost: Annotated[
        CostView | None,
        Meta(description="What agents in code say that these cost; `null` if they don't. `cost` is ours."),
    ] = None


class BudgetView(View, frozen=True, kw_only=True):
    """A budget of yours, or of an agent or API key of yours. Running calls have `reserved` some of it."""

    scope: Literal["user", "agent", "key"]
    id: Annotated[str, Meta(description="The user, agent or API key.")]
    period: Literal["day", "month"]
    limit: str
    spent: str
    reserved: str
    currency: str
    resets_at: Time


class UsageReportView(View, frozen=True, kw_only=True):
    """Usage in groups, ordered by what they are grouped by, and your budgets."""

    items: Sequence[UsageSumView]
    budgets: Sequence[BudgetView] = ()


class RunningTurnView(View, frozen=True, kw_only=True):
    """A turn that runs or waits. `stalled`: its node has stopped responding; another takes it over soon.

    Of an agent in code, `agent` is the program's key, `codeVersion` that of the code that began to run the
    turn, and `worker` the process that runs the program. `step` is the oldest of its steps that have begun
    and not ended, with the time; it is known after a second or two. A turn that nobody runs, because its
    program isn't there, waits for a `worker`; one that waits for an answer, for a `person`.
    """

    id: Id
    conversation_id: Id
    user_id: str
    agent_id: Id
    node_id: str | None
    model: str | None
    started_at: Time
    state: Literal["running", "aborting", "stalled", "waiting"]
    agent: str | None = None
    code_version: int | None = None
    step: str | None = None
    step_since: Time | None = None
    worker: str | None = None
    waits_for: WaitsFor | None = None


class ProgramView(View, frozen=True, kw_only=True):
    """The program of an agent in code."""

    key: str
    version: int


class WorkerView(View, frozen=True, kw_only=True):
    """A process that runs the programs of agents in code; of the server itself, one for each node.

    `capacity` is how many turns it runs at once, `null` without a limit. `blockedMs`: for how long its event
    loop had not answered when it was heard of last; after ten seconds it gets no new turns.
    """

    id: str
    name: str
    node: str
    sdk: str
    agents: Sequence[ProgramView]
    capacity: int | None
    running: int
    connected_at: Time
    last_beat_at: Time
    blocked_ms: int
    is_draining: bool


class WorkersView(View, frozen=True, kw_only=True):
    """All workers, on all nodes, the oldest first."""

    items: Sequence[WorkerView]


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
